// The short way for the lines that make up nearly all of nearly every trace.
//
//     malloc(8) = 81d220b48<6655>
//
// The Parser takes 40 ns for such a line. It looks for the end of the line, then for the parenthesis. It compares names
// and skips blanks that are not there. The function parse_plain() reads a line once from left to right, and finds the
// LF at the end of the last number, in 10 ns. It leaves all other lines to the Parser, which knows all forms and the
// messages.

#include "libcmt/text/parser.h"

#include <array>
#include <bit>
#include <cstring>

namespace cmt::text {
namespace {

/// At least so many bytes can be read where a line begins; all literals here are shorter. Only the last lines of a
/// window are nearer to its end, and the Parser reads those lines.
constexpr std::size_t margin = 64;

/// Eight bytes of text at once, the first in the lowest byte. A loop over the digits of a number would end with a
/// branch that the processor nearly always predicts wrongly, which costs more than all the digits.
class EightBytes {
 public:
  explicit EightBytes(const char* at) { std::memcpy(&bytes_, at, sizeof bytes_); }

  /// How many of them are digits, from the first one on.
  template <unsigned base>
  unsigned digits() const {
    const std::uint64_t letters = base == 16 ? in_range('a', 'f') : 0;
    const std::uint64_t others = ~((in_range('0', '9') | letters) & ~bytes_) & tops;
    return others == 0 ? 8 : static_cast<unsigned>(std::countr_zero(others)) / 8;
  }

  /// The number of the first `count` of them, from 1 to 8 digits.
  template <std::uint64_t base>
  std::uint64_t number(unsigned count) const {
    const std::uint64_t bytes = bytes_ << (64 - 8 * count);
    std::uint64_t parts = bytes & ones * 0x0f;
    if (base == 16) parts += ((bytes >> 6) & ones) * 9;  // letters have the bit of 64
    parts = (parts * base + (parts >> 8)) & 0x00ff00ff00ff00ff;
    parts = (parts * (base * base) + (parts >> 16)) & 0x0000ffff0000ffff;
    return (parts * (base * base * base * base) + (parts >> 32)) & 0xffffffff;
  }

 private:
  static constexpr std::uint64_t ones = 0x0101010101010101, tops = ones * 0x80;

  /// The highest bit of each byte from `first` to `last`, if the byte is below 128. No difference borrows from the next
  /// byte.
  std::uint64_t in_range(unsigned first, unsigned last) const {
    const std::uint64_t high = bytes_ | tops;
    return (high - ones * first) & ~(high - ones * (last + 1));
  }

  std::uint64_t bytes_;
};

/// Steps through a line that ends with LF. No part that it takes contains an LF, so it stops at the LF at the latest.
class PlainScan {
 public:
  /// It may read all bytes before `end`.
  PlainScan(const char* at, const char* end) : at_(at), end_(end) {}

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

  bool decimal(std::uint64_t& value) { return number<10, 19>(value); }
  bool hex(std::uint64_t& value) { return number<16, 16>(value); }

  bool block(std::uint64_t& address, Tag& tag) {
    if (!is_at('<') && !hex(address)) return false;
    if (!take('<')) return true;
    return decimal(tag) && tag != 0 && take('>');
  }

  std::size_t distance_from(const char* begin) const { return static_cast<std::size_t>(at_ - begin); }

 private:
  /// A number of at least one digit and at most `digits_max`.
  template <unsigned base, unsigned digits_max>
  bool number(std::uint64_t& value) {
    static constexpr std::array<std::uint64_t, 9> powers = [] {
      std::array<std::uint64_t, 9> all{1};
      for (std::size_t i = 1; i < all.size(); ++i) all[i] = all[i - 1] * base;
      return all;
    }();
    constexpr std::ptrdiff_t looked_at = 3 * sizeof(std::uint64_t);
    if (end_ - at_ < looked_at) return false;
    const EightBytes first(at_);
    unsigned count = first.digits<base>(), all = count;
    if (count == 0) return false;
    value = first.number<base>(count);
    while (count == 8 && all <= digits_max) {
      const EightBytes more(at_ + all);
      count = more.digits<base>();
      if (count != 0) value = value * powers[count] + more.number<base>(count);
      all += count;
    }
    at_ += all;
    return all <= digits_max;
  }

  const char* at_;
  const char* end_;
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

/// Reads the attributes, in this order. Compares byte by byte, because fewer than `margin` bytes may be left.
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
  PlainScan scan(lines.data(), lines.data() + lines.size());
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
