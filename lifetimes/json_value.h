#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cmt::lifetimes {

/// As much of JSON as our own summaries are made of: no fractions, no negative numbers, no \u escapes above 0x7f.
class JsonValue {
 public:
  using Array = std::vector<JsonValue>;
  using Object = std::vector<std::pair<std::string, JsonValue>>;

  /// Throws FormatError with "PATH: offset 0x1f" for what is not JSON of this sort, or nested more than 16 deep.
  static JsonValue parse(std::string_view text, const std::string& path);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }

  /// The value as what it has to be; std::invalid_argument if it is something else.
  std::uint64_t number() const;
  bool truth() const;
  const std::string& string() const;
  const Array& array() const;
  const Object& object() const;

  /// A member of an object; std::invalid_argument if there is none.
  const JsonValue& at(std::string_view key) const;

 private:
  friend class JsonParser;
  std::variant<std::monostate, bool, std::uint64_t, std::string, Array, Object> value_;
};

}  // namespace cmt::lifetimes
