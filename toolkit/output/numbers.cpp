// Writes numbers as numbers.h shows.

#include "toolkit/output/numbers.h"

#include <array>
#include <cassert>
#include <charconv>
#include <cstdio>
#include <span>

namespace cmt::output {
namespace {

/// With the largest unit in which the number is at least 1, and three digits.
std::string scaled(double number, double step, std::span<const char* const> units) {
  assert(!units.empty());
  std::size_t unit = 0;
  // 999.5 would be rounded up to four digits.
  for (; unit + 1 < units.size() && number >= (step == 1000 ? 999.5 : step); ++unit) number /= step;
  if (unit == 0) return fixed(number, 0) + " " + units[0];
  return fixed(number, number < 9.995 ? 2 : number < 99.95 ? 1 : 0) + " " + units[unit];
}

}  // namespace

std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string counted(std::uint64_t number, const std::string& noun) {
  return with_commas(number) + " " + noun + (number == 1 ? "" : noun.ends_with('s') ? "es" : "s");
}

std::string hex(std::uint64_t address) {
  std::array<char, 16> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), address, 16).ptr};
}

std::string fixed(double number, int decimals) {
  assert(decimals >= 0 && decimals <= 20);
  std::array<char, 400> text;  // the largest double has 309 digits before the point
  std::snprintf(text.data(), text.size(), "%.*f", decimals, number);
  return text.data();
}

std::string percent_text(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "-" : fixed(100.0 * static_cast<double>(part) / static_cast<double>(whole), 1) + " %";
}

std::string range_text(std::uint64_t low, std::uint64_t high) {
  return low == high ? std::to_string(low) : std::to_string(low) + "-" + std::to_string(high);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return scaled(static_cast<double>(bytes), 1024, units);
}

std::string time_text(double nanoseconds) {
  constexpr std::array<const char*, 4> units{"ns", "us", "ms", "s"};
  return scaled(nanoseconds, 1000, units);
}

std::string seconds_text(std::int64_t nanoseconds) { return fixed(static_cast<double>(nanoseconds) / 1e9, 3) + " s"; }

std::string padded(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

}  // namespace cmt::output
