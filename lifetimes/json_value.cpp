#include "lifetimes/json_value.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <stdexcept>

#include "cmt/error.h"

namespace cmt::lifetimes {

/// A parser by recursive descent.
class JsonParser {
 public:
  JsonParser(std::string_view text, const std::string& path) : all_(text), left_(text), path_(path) {}

  JsonValue document() {
    JsonValue value = parse(0);
    skip_blanks();
    if (!left_.empty()) fail("more behind the end");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    char place[40];
    std::snprintf(place, sizeof place, ": offset 0x%zx", all_.size() - left_.size());
    throw FormatError(path_ + place, what);
  }

  void skip_blanks() { left_.remove_prefix(std::min(left_.find_first_not_of(" \t\r\n"), left_.size())); }

  bool take(std::string_view expected) {
    skip_blanks();
    if (!left_.starts_with(expected)) return false;
    left_.remove_prefix(expected.size());
    return true;
  }

  void need(std::string_view expected) {
    if (!take(expected)) fail("expected '" + std::string(expected) + "'");
  }

  JsonValue parse(int depth) {
    if (depth > 16) fail("nested too deeply");
    JsonValue value;
    if (take("{")) {
      value.value_ = members(depth);
    } else if (take("[")) {
      value.value_ = elements(depth);
    } else if (take("\"")) {
      value.value_ = string();
    } else if (take("true")) {
      value.value_ = true;
    } else if (take("false")) {
      value.value_ = false;
    } else if (!take("null")) {
      value.value_ = number();
    }
    return value;
  }

  JsonValue::Object members(int depth) {
    JsonValue::Object object;
    if (take("}")) return object;
    do {
      need("\"");
      std::string key = string();
      need(":");
      object.emplace_back(std::move(key), parse(depth + 1));
    } while (take(","));
    need("}");
    return object;
  }

  JsonValue::Array elements(int depth) {
    JsonValue::Array array;
    if (take("]")) return array;
    do array.push_back(parse(depth + 1));
    while (take(","));
    need("]");
    return array;
  }

  std::uint64_t number() {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), number);
    if (error != std::errc()) fail("expected a value");
    left_.remove_prefix(static_cast<std::size_t>(end - left_.data()));
    return number;
  }

  std::string string() {
    std::string out;
    for (;;) {
      if (left_.empty()) fail("a string without an end");
      const char c = left_.front();
      left_.remove_prefix(1);
      if (c == '"') return out;
      out += c == '\\' ? escape() : c;
    }
  }

  char escape() {
    if (left_.empty()) fail("a string without an end");
    const char c = left_.front();
    left_.remove_prefix(1);
    switch (c) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'u':
        return code_unit();
      case '"':
      case '\\':
      case '/':
        return c;
      default:
        fail("an unknown escape");
    }
  }

  char code_unit() {
    unsigned unit = 0;
    const auto digits = left_.substr(0, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    if (error != std::errc() || end != digits.data() + 4 || unit > 0x7f) fail("an escape that is not ASCII");
    left_.remove_prefix(4);
    return static_cast<char>(unit);
  }

  std::string_view all_;
  std::string_view left_;
  const std::string& path_;
};

namespace {

template <class T, class Value>
const T& as(const Value& value, const char* expected) {
  if (const T* const found = std::get_if<T>(&value)) return *found;
  throw std::invalid_argument(std::string("expected ") + expected);
}

}  // namespace

JsonValue JsonValue::parse(std::string_view text, const std::string& path) { return JsonParser(text, path).document(); }

std::uint64_t JsonValue::number() const { return as<std::uint64_t>(value_, "a number"); }
bool JsonValue::truth() const { return as<bool>(value_, "true or false"); }
const std::string& JsonValue::string() const { return as<std::string>(value_, "a string"); }
const JsonValue::Array& JsonValue::array() const { return as<Array>(value_, "an array"); }
const JsonValue::Object& JsonValue::object() const { return as<Object>(value_, "an object"); }

const JsonValue& JsonValue::at(std::string_view key) const {
  for (const auto& [name, value] : object()) {
    if (name == key) return value;
  }
  throw std::invalid_argument("no \"" + std::string(key) + "\"");
}

}  // namespace cmt::lifetimes
