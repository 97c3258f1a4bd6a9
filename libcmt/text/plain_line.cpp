// The short way for the lines that make up nearly all of nearly every trace.
//
//     malloc(8) = 81d220b48<6655>
//
// The Parser takes 40 ns for it: it looks for the end of the line, then for the parenthesis, compares names, skips
// blanks that are not there. Here a line is read once from left to right, the LF comes where the last number ends, and
// what does not fit is left to the Parser, which knows all forms and says what is wrong. 10 ns a line.

#include "libcmt/text/parser.h"

#include <array>
#include <cstring>

namespace cmt::text {
namespace {

/// Bytes that may be looked at where a line begins; more than any literal here. Only the last lines of a window are
/// nearer to its end, and the Parser reads those.
constexpr std::size_t margin = 64;

constexpr std::array<std::uint8_t, 256> hex_digits = [] {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(16);
  for (unsigned i = 0; i < 16; ++i)
    digits[static_cast<unsigned char>("0123456789abcdef"[i])] = static_cast<std::uint8_t>(i);
  return digits;
}();

/// Steps through a line that ends with LF. Nothing that it takes contains an LF, so it stops there at the latest.
class PlainScan {
 public:
  explicit PlainScan(const char* at) : at_(at) {}

  /// Only within `margin`.
  template <std::size_t size>
  bool take(const char (&literal)[size]) {
    if (std::memcmp(at_, literal, size - 1) != 0) return false;
    at_ += size - 1;
    return true;
  }

  bool take(char wanted) {
    if (*at_ != wanted) return false;
    ++at_;
    return true;
  }

  bool is_at(char wanted) const { return *at_ == wanted; }

  bool decimal(std::uint64_t& value) {
    const char* const begin = at_;
    std::uint64_t sum = 0;
    for (unsigned digit; (digit = static_cast<unsigned char>(*at_) - '0') < 10; ++at_) sum = sum * 10 + digit;
    value = sum;
    return at_ != begin && at_ - begin <= 19;
  }

  bool hex(std::uint64_t& value) {
    const char* const begin = at_;
    std::uint64_t sum = 0;
    for (unsigned digit; (digit = hex_digits[static_cast<unsigned char>(*at_)]) < 16; ++at_) sum = sum << 4 | digit;
    value = sum;
    return at_ != begin && at_ - begin <= 16;
  }

  bool block(std::uint64_t& address, Tag& tag) {
    if (!is_at('<') && !hex(address)) return false;
    if (!take('<')) return true;
    return decimal(tag) && tag != 0 && take('>');
  }

  std::size_t distance_from(const char* begin) const { return static_cast<std::size_t>(at_ - begin); }

 private:
  const char* at_;
};

bool call(PlainScan& scan, Event& event) {
  if (scan.take("malloc(")) {
    event.kind = Kind::malloc;
    return scan.decimal(event.size) && scan.take(')');
  }
  if (scan.take("free(")) {
    event.kind = Kind::free;
    return scan.block(event.old_address, event.old_tag) && scan.take(')');
  }
  if (scan.take("realloc(")) {
    event.kind = Kind::realloc;
    return scan.block(event.old_address, event.old_tag) && scan.take(',') && scan.take(' ') &&
           scan.decimal(event.size) && scan.take(')');
  }
  if (scan.take("calloc(")) {
    event.kind = Kind::calloc;
    return scan.decimal(event.count) && scan.take(',') && scan.take(' ') && scan.decimal(event.size) && scan.take(')');
  }
  if (scan.take("operator new(")) {
    event.kind = Kind::operator_new;
    return scan.decimal(event.size) && scan.take(')');
  }
  if (!scan.take("operator delete(") || !scan.block(event.old_address, event.old_tag)) return false;
  event.kind = Kind::operator_delete;
  if (scan.take(')')) return true;
  event.kind = Kind::operator_delete_sized;
  return scan.take(',') && scan.take(' ') && scan.decimal(event.size) && scan.take(')');
}

/// The attributes, which stand in this order. Compared byte by byte: a line may be long, and its end near.
bool attributes(PlainScan& scan, Event& event) {
  const auto number = [&](std::string_view key, std::uint64_t& value) {
    for (const char c : key) {
      if (!scan.take(c)) return false;
    }
    return scan.decimal(value) && value <= attribute_limit &&
           (scan.is_at('\n') || (scan.take(' ') && !scan.is_at('\n')));
  };
  if (scan.is_at('t')) {
    PlainScan ahead = scan;
    ahead.take('t');
    std::uint64_t thread = 0;
    if (ahead.is_at('h')) {
      if (!number("thread=", thread) || thread > 0xffffffff) return false;
      event.thread = static_cast<std::uint32_t>(thread);
    }
  }
  if (scan.is_at('t') && !number("time=", event.time_ns)) return false;
  if (scan.is_at('u') && !number("usable=", event.usable)) return false;
  std::uint64_t stack = 0;
  if (scan.is_at('s') && (!number("stack=", stack) || stack > 0xffffffff)) return false;
  event.stack = static_cast<StackId>(stack);
  return true;
}

}  // namespace

std::size_t parse_plain(std::string_view lines, Event& event) {
  if (lines.size() < margin) return 0;
  PlainScan scan(lines.data());
  if (!call(scan, event)) return 0;
  if (traits(event.kind).allocates) {
    for (const char c : std::string_view(" = ")) {
      if (!scan.take(c)) return 0;
    }
    if (!scan.block(event.address, event.tag)) return 0;
  }
  if (scan.take(' ') && (scan.is_at('\n') || !attributes(scan, event))) return 0;
  return scan.is_at('\n') ? scan.distance_from(lines.data()) : 0;
}

}  // namespace cmt::text
