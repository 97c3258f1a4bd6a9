// The longer functions of Scanner: numbers, quoted strings and keys.

#include "libcmt/text/scanner.h"

#include <charconv>

namespace cmt::text {

bool Scanner::take_until(char stop, std::string_view& taken) {
  skip_blanks();
  const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
  const std::size_t length = rest.find(stop);
  if (length == std::string_view::npos) return false;
  taken = rest.substr(0, length);
  while (!taken.empty() && (taken.back() == ' ' || taken.back() == '\t')) taken.remove_suffix(1);
  at_ += length + 1;
  return true;
}

bool Scanner::take_number(std::uint64_t& value, int base) {
  const auto [end, error] = std::from_chars(at_, end_, value, base);
  at_ = end;
  return error == std::errc();
}

bool Scanner::take_hex(std::uint64_t& value) {
  skip_blanks();
  if (end_ - at_ >= 2 && at_[0] == '0' && (at_[1] == 'x' || at_[1] == 'X')) at_ += 2;
  return take_number(value, 16);
}

bool Scanner::take_escape(std::string& value) {
  if (at_ == end_) return false;
  const char letter = *at_++;
  if (const std::size_t known = escape_letters.find(letter); known != std::string_view::npos) {
    value += escaped_bytes[known];
    return true;
  }
  unsigned char byte = 0;
  if (letter != 'x' || end_ - at_ < 2 || std::from_chars(at_, at_ + 2, byte, 16).ptr != at_ + 2) return false;
  value += static_cast<char>(byte);
  at_ += 2;
  return true;
}

bool Scanner::take_string(std::string& value) {
  value.clear();
  if (!take('"')) return false;
  while (at_ != end_) {
    const char c = *at_++;
    if (c == '"') return true;
    if (c != '\\') {
      value += c;
    } else if (!take_escape(value)) {
      return false;
    }
  }
  return false;
}

std::string_view Scanner::take_key() {
  skip_blanks();
  const char* const begin = at_;
  while (at_ != end_ && ((*at_ >= 'a' && *at_ <= 'z') || (*at_ >= '0' && *at_ <= '9') || *at_ == '_')) ++at_;
  return {begin, static_cast<std::size_t>(at_ - begin)};
}

std::string_view Scanner::take_bare() {
  const char* const begin = at_;
  while (at_ != end_ && *at_ > ' ' && *at_ < 0x7f && *at_ != '"' && *at_ != '#') ++at_;
  return {begin, static_cast<std::size_t>(at_ - begin)};
}

}  // namespace cmt::text
