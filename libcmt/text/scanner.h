/// A cursor over one line of text, for the parsers of text traces and of their definitions of call stacks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cmt::text {

/// The bytes of a quoted string that are written as a backslash and a letter, and these letters.
inline constexpr std::string_view escaped_bytes = "\"\\\n\t\r", escape_letters = "\"\\ntr";

/// A cursor over one line. Every taker skips blanks first, and says with its result whether the thing was there.
class Scanner {
 public:
  explicit Scanner(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }

  /// Whether only blanks, or a comment, are left.
  bool at_end() {
    skip_blanks();
    return at_ == end_ || *at_ == '#';
  }

  bool take(char wanted) {
    skip_blanks();
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }

  bool take(std::string_view wanted) {
    skip_blanks();
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }

  /// Everything up to `stop`, trimmed at its end, and `stop` itself.
  bool take_until(char stop, std::string_view& taken);

  /// 64 bits, decimal. False also where the value does not fit.
  bool take_decimal(std::uint64_t& value) {
    skip_blanks();
    return take_number(value, 10);
  }

  /// 64 bits, hexadecimal, with or without 0x.
  bool take_hex(std::uint64_t& value);

  /// A quoted string, its escapes resolved. False where it is malformed.
  bool take_string(std::string& value);

  /// The longest run of a-z, 0-9 and _.
  std::string_view take_key();

  /// The longest run of characters that are neither blank nor quote nor '#'.
  std::string_view take_bare();

  char peek() {
    skip_blanks();
    return at_ == end_ ? '\0' : *at_;
  }

 private:
  bool take_number(std::uint64_t& value, int base);
  bool take_escape(std::string& value);

  const char* at_;
  const char* end_;
};

}  // namespace cmt::text
