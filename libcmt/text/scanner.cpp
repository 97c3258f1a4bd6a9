#include "libcmt/text/scanner.h"

namespace cmt::text {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

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

bool Scanner::take_hex(std::uint64_t& value) {
  skip_blanks();
  if (end_ - at_ >= 2 && at_[0] == '0' && (at_[1] == 'x' || at_[1] == 'X')) at_ += 2;
  const char* const begin = at_;
  std::uint64_t sum = 0;
  for (int digit; at_ != end_ && (digit = hex_digit(*at_)) >= 0; ++at_) {
    if (sum >> 60 != 0) return false;
    sum = sum << 4 | static_cast<std::uint64_t>(digit);
  }
  value = sum;
  return at_ != begin;
}

bool Scanner::take_escape(std::string& value) {
  if (at_ == end_) return false;
  switch (*at_++) {
    case '\\':
      value += '\\';
      return true;
    case '"':
      value += '"';
      return true;
    case 'n':
      value += '\n';
      return true;
    case 't':
      value += '\t';
      return true;
    case 'r':
      value += '\r';
      return true;
    case 'x':
      break;
    default:
      return false;
  }
  if (end_ - at_ < 2 || hex_digit(at_[0]) < 0 || hex_digit(at_[1]) < 0) return false;
  value += static_cast<char>(hex_digit(at_[0]) * 16 + hex_digit(at_[1]));
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
