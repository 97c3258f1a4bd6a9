#include "toolkit/output/json.h"

#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <utility>

#include "toolkit/output/utf8.h"

namespace cmt::output {
namespace {

/// The escape sequence of a byte in a JSON string; empty where it needs none.
std::string escape(char c) {
  constexpr std::string_view named = "\"\\\n\t\r", letters = "\"\\ntr";
  if (const auto at = named.find(c); at != named.npos) return {'\\', letters[at]};
  if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) return {};
  constexpr const char* digits = "0123456789abcdef";
  return std::string("\\u00") + digits[(c >> 4) & 15] + digits[c & 15];
}

}  // namespace

void JsonWriter::begin_object(std::string_view key) { open(key, '{'); }
void JsonWriter::end_object() { close('}'); }
void JsonWriter::begin_array(std::string_view key) { open(key, '['); }
void JsonWriter::end_array() { close(']'); }

void JsonWriter::open(std::string_view key, char bracket) {
  if (!levels_.empty()) separate(key, true);
  text_ += bracket;
  levels_.push_back({.array = bracket == '['});
}

void JsonWriter::close(char bracket) {
  assert(!levels_.empty() && levels_.back().array == (bracket == ']'));
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty && !(level.array && level.plain)) break_line();
  text_ += bracket;
}

void JsonWriter::separate(std::string_view key, bool nests) {
  assert(!levels_.empty() && levels_.back().array == key.empty());
  Level& level = levels_.back();
  if (!level.empty) text_ += ',';
  if (nests) level.plain = false;
  if (!level.array || !level.plain)
    break_line();
  else if (!level.empty)
    text_ += ' ';
  level.empty = false;
  if (level.array) return;
  append(key);
  text_ += ": ";
}

void JsonWriter::break_line() {
  text_ += '\n';
  text_.append(2 * levels_.size(), ' ');
}

/// Bytes that are not UTF-8, as a path may have, become U+FFFD: JSON cannot represent them.
void JsonWriter::append(std::string_view text) {
  text_ += '"';
  for (const char c : to_utf8(text)) {
    const std::string escaped = escape(c);
    escaped.empty() ? text_ += c : text_ += escaped;
  }
  text_ += '"';
}

void JsonWriter::append(double number) {
  if (!std::isfinite(number)) return append(std::nullopt);
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  assert(error == std::errc());
  text_.append(digits.data(), end);
}

std::string JsonWriter::take() {
  assert(levels_.empty());
  text_ += '\n';
  return std::exchange(text_, {});
}

}  // namespace cmt::output
