// Round numbers for axes. What is round depends on the unit: bytes step by powers of two, all else by 1, 2 or 5 times
// a power of ten. A logarithmic axis has powers: of 10, or for bytes of 2, every one or every n-th of them.

#include "toolkit/picture/axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "toolkit/output/numbers.h"

namespace cmt::output {
namespace {

struct Magnitude {
  double size;
  const char* name;
};

constexpr std::array<Magnitude, 7> counts{
    {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}, {1e15, "P"}, {1e18, "E"}}};
constexpr std::array<Magnitude, 7> bytes{
    {{1, "B"}, {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"}, {0x1p40, "TiB"}, {0x1p50, "PiB"}, {0x1p60, "EiB"}}};
constexpr std::array<Magnitude, 4> times{{{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}}};
constexpr std::array<Magnitude, 1> shares{{{0.01, "%"}}};

std::span<const Magnitude> magnitudes(Unit unit) {
  switch (unit) {
    case Unit::count:
      return counts;
    case Unit::bytes:
      return bytes;
    case Unit::ns:
      return times;
    case Unit::share:
      return shares;
  }
  return counts;
}

/// The greatest unit of which a number is at least one.
const Magnitude& magnitude_of(Unit unit, double number) {
  const std::span<const Magnitude> all = magnitudes(unit);
  std::size_t i = 0;
  while (i + 1 < all.size() && number >= all[i + 1].size) ++i;
  return all[i];
}

/// With as many digits as are not zero, three after the point at most.
std::string plain(double number) {
  if (number >= 1e15) return fixed(number, 0);
  std::string text = fixed(number, 3);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string with_unit(double number, const Magnitude& magnitude) {
  const std::string digits = plain(number / magnitude.size);
  if (digits == "0" || *magnitude.name == '\0') return digits;
  return digits + " " + magnitude.name;
}

/// The least round step that is no less than `step`.
double round_step(Unit unit, double step) {
  if (unit == Unit::bytes) return std::exp2(std::max(0.0, std::ceil(std::log2(step) - 1e-9)));
  if (unit != Unit::share && step <= 1) return 1;
  const double power = std::pow(10, std::floor(std::log10(step) + 1e-9));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::vector<Tick> linear_ticks(Unit unit, double low, double high, int most) {
  const double step = round_step(unit, (high - low) / (most - 1));
  const Magnitude& magnitude = magnitude_of(unit, high);
  std::vector<Tick> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i < most; ++i) {
    const double at = (first + i) * step;
    if (at > high + step * 1e-6) break;
    ticks.push_back({at, with_unit(at, magnitude)});
  }
  return ticks;
}

std::vector<Tick> log_ticks(Unit unit, double low, double high, int most) {
  const double base = unit == Unit::bytes ? 2 : 10;
  const double first = low < 1 ? 0 : std::ceil(std::log(low) / std::log(base) - 1e-9);
  const double last = std::floor(std::log(std::max(high, 1.0)) / std::log(base) + 1e-9);
  const double every = std::max(1.0, std::ceil((last - first + 1) / std::max(1, most - (low < 1 ? 1 : 0))));
  std::vector<Tick> ticks;
  if (low <= 0) ticks.push_back({0, "0"});
  for (double power = first; power <= last; power += every) {
    const double at = std::pow(base, power);
    ticks.push_back({at, with_unit(at, magnitude_of(unit, at))});
  }
  return ticks;
}

}  // namespace

double to_scale(double number, bool log) {
  if (!log) return number;
  return number >= 1 ? 1 + std::log2(number) : std::max(number, 0.0);
}

double from_scale(double place, bool log) {
  if (!log) return place;
  return place >= 1 ? std::exp2(place - 1) : std::max(place, 0.0);
}

std::vector<Tick> choose_ticks(Unit unit, bool log, double low, double high, int most) {
  if (!(high > low) || !std::isfinite(high - low)) return {{low, label_text(unit, low)}};
  return log ? log_ticks(unit, low, high, most) : linear_ticks(unit, low, high, most);
}

std::string label_text(Unit unit, double number) {
  const Magnitude& magnitude = magnitude_of(unit, number);
  if (unit == Unit::count && number < 1e4) return with_commas(static_cast<std::uint64_t>(std::max(number, 0.0)));
  const double scaled = number / magnitude.size;
  const std::string digits = scaled == std::floor(scaled) && scaled < 1e4 ? fixed(scaled, 0)
                                                                          : fixed(scaled, scaled < 9.995   ? 2
                                                                                          : scaled < 99.95 ? 1
                                                                                                           : 0);
  return *magnitude.name == '\0' ? digits : digits + " " + magnitude.name;
}

double round_up(Unit unit, double high) {
  if (!(high > 0) || !std::isfinite(high)) return 1;
  const double step = round_step(unit, high / 10);
  return std::ceil(high / step - 1e-9) * step;
}

}  // namespace cmt::output
