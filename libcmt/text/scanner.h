/// A cursor over one line of text, for the parsers of text traces and of their definitions of call stacks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cmt::text {

/// The bytes of a quoted string that are written as a backslash and a letter, and the letter of each.
inline constexpr std::string_view escaped_bytes = "\"\\\n\t\r", escape_letters = "\"\\ntr";

/// A cursor over one line. Every take function skips blanks first, and returns whether it found what it takes.
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

  /// Takes everything up to `stop`, and `stop` itself. `taken` has no blanks at its end.
  bool take_until(char stop, std::string_view& taken);

  /// Takes a decimal number. Returns false also if it has more than 64 bits.
  bool take_decimal(std::uint64_t& value) {
    skip_blanks();
    return take_number(value, 10);
  }

  /// Takes a hexadecimal number of up to 64 bits, with or without 0x.
  bool take_hex(std::uint64_t& value);

  /// Takes a quoted string and resolves its escapes. Returns false if it is malformed.
  bool take_string(std::string& value);

  /// Takes the longest run of a-z, 0-9 and _.
  std::string_view take_key();

  /// Takes the longest run of ASCII characters that are neither blank nor quote nor '#'.
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
