// Chooses ranges and ticks as axis.h describes.

#include "toolkit/picture/axis.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <span>

#include "toolkit/output/numbers.h"

namespace cmt::picture {
namespace {

struct Magnitude {
  double size;
  const char* name;
};

constexpr std::array<Magnitude, 7> count_magnitudes{
    {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}, {1e15, "P"}, {1e18, "E"}}};
constexpr std::array<Magnitude, 7> byte_magnitudes{
    {{1, "B"}, {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"}, {0x1p40, "TiB"}, {0x1p50, "PiB"}, {0x1p60, "EiB"}}};
constexpr std::array<Magnitude, 4> time_magnitudes{{{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}}};
constexpr std::array<Magnitude, 1> share_magnitudes{{{0.01, "%"}}};

/// A round step is a factor times a power of the base. A logarithmic axis has powers of the base.
constexpr std::array<double, 3> decimal_factors{1, 2, 5};
constexpr std::array<double, 1> binary_factors{1};

struct TickRules {
  std::string_view name;
  std::span<const Magnitude> magnitudes;
  double base;
  std::span<const double> factors;
  double least_step;
};

constexpr std::array<TickRules, 5> tick_rules{{{"count", count_magnitudes, 10, decimal_factors, 1},
                                               {"bytes", byte_magnitudes, 2, binary_factors, 1},
                                               {"ns", time_magnitudes, 10, decimal_factors, 1},
                                               {"share", share_magnitudes, 10, decimal_factors, 0},
                                               {"one_in", count_magnitudes, 10, decimal_factors, 1}}};

const TickRules& rules_of(Unit unit) {
  assert(static_cast<std::size_t>(unit) < tick_rules.size());
  return tick_rules[static_cast<std::size_t>(unit)];
}

/// The greatest magnitude of which a number is at least one.
const Magnitude& magnitude_of(Unit unit, double number) {
  const std::span<const Magnitude> all = rules_of(unit).magnitudes;
  std::size_t i = 0;
  while (i + 1 < all.size() && number >= all[i + 1].size) ++i;
  return all[i];
}

/// With as many digits as are not zero, `most` after the point at most.
std::string plain(double number, int most = 3) {
  if (number >= 1e15) return output::fixed(number, 0);
  std::string text = output::fixed(number, most);
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
  const TickRules& rules = rules_of(unit);
  if (step <= rules.least_step) return rules.least_step;
  const double power = std::pow(rules.base, std::floor(std::log(step) / std::log(rules.base) + 1e-9));
  for (const double factor : rules.factors) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return rules.base * power;
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
  const double base = rules_of(unit).base;
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

constexpr double infinite = std::numeric_limits<double>::infinity();

/// The least and the greatest of some numbers.
struct Extent {
  double low = infinite;
  double high = -infinite;

  void add(double number) {
    if (!std::isfinite(number)) return;
    low = std::min(low, number);
    high = std::max(high, number);
  }

  Range range() const {
    if (high < low) return {};
    return high > low ? Range{low, high} : Range{std::min(low, 0.0), low > 0 ? low : 1};
  }
};

/// Asserts that a range is finite and not empty, since positions are divided by its width.
Range checked(Range range) {
  assert(std::isfinite(range.low) && std::isfinite(range.high) && range.low < range.high);
  return range;
}

bool has_points(const Panel& panel) {
  return std::any_of(panel.series.begin(), panel.series.end(),
                     [](const Series& series) { return series.form == Series::Form::point; });
}

/// Points do not lie on the edge of their panel. Its axes begin at 0, so that a distance is as large as it looks.
Range padded(const Range& range) {
  return {std::min(range.low, 0.0), range.high + std::max((range.high - range.low) * 0.12, range.high * 0.05)};
}

void add_x(Extent& extent, const Panel& panel) {
  for (const Series& series : panel.series) {
    for (const double x : series.x) extent.add(x);
    for (const Series::Within& within : series.within) {
      extent.add(within.x_low);
      extent.add(within.x_high);
    }
  }
  if (!panel.heat) return;
  for (const double edge : panel.heat->x_edges) extent.add(edge);
}

/// The greatest height that is drawn: of a line its own, of bands their sum.
double greatest_height(const Panel& panel) {
  Extent extent;
  std::vector<double> sums;
  for (const Series& series : panel.series) {
    const bool band = series.form == Series::Form::band || series.form == Series::Form::step_band;
    if (band && sums.size() < series.y.size()) sums.resize(series.y.size());
    for (std::size_t i = 0; i < series.y.size(); ++i) {
      if (!std::isfinite(series.y[i])) continue;
      if (band) sums[i] += std::max(series.y[i], 0.0);
      extent.add(band ? sums[i] : series.y[i]);
    }
  }
  return extent.high;
}

}  // namespace

double to_scale(double number, bool log) {
  if (!log) return number;
  return number >= 1 ? 1 + std::log2(number) : std::max(number, 0.0);
}

std::vector<Tick> choose_ticks(Unit unit, bool log, double low, double high, int most) {
  assert(most >= 2);
  if (!(high > low) || !std::isfinite(high - low)) return {{low, label_text(unit, low)}};
  std::vector<Tick> ticks = log ? log_ticks(unit, low, high, most) : linear_ticks(unit, low, high, most);
  assert(ticks.size() <= static_cast<std::size_t>(most));
  return ticks;
}

std::string label_text(Unit unit, double number) {
  const Magnitude& magnitude = magnitude_of(unit, number);
  if (unit == Unit::one_in && number >= 1)
    return plain(100 - 100 / number, static_cast<int>(std::log10(number)) + 1) + " %";
  if (unit == Unit::count && number < 1e4)
    return output::with_commas(static_cast<std::uint64_t>(std::max(number, 0.0)));
  const double scaled = number / magnitude.size;
  const std::string digits = scaled == std::floor(scaled) && scaled < 1e4 ? output::fixed(scaled, 0)
                                                                          : output::fixed(scaled, scaled < 9.995   ? 2
                                                                                                  : scaled < 99.95 ? 1
                                                                                                                   : 0);
  return *magnitude.name == '\0' ? digits : digits + " " + magnitude.name;
}

double round_up(Unit unit, double high) {
  if (!(high > 0) || !std::isfinite(high)) return 1;
  const double step = round_step(unit, high / 10);
  return std::ceil(high / step - 1e-9) * step;
}

Range x_range(const Picture& picture, const Panel& panel) {
  const Axis& axis = panel.x;
  const bool shared = std::all_of(picture.panels.begin(), picture.panels.end(), [&](const Panel& other) {
    return other.x.title == axis.title && other.x.unit == axis.unit && other.x.log == axis.log;
  });
  Extent extent;
  if (has_points(panel)) {
    add_x(extent, panel);
    return checked(padded(extent.range()));
  }
  if (!shared) {
    add_x(extent, panel);
  } else {
    for (const Panel& other : picture.panels) add_x(extent, other);
  }
  return checked(extent.range());
}

Range y_range(const Panel& panel) {
  Extent extent;
  if (has_points(panel)) {
    for (const Series& series : panel.series) {
      for (const double y : series.y) extent.add(y);
      for (const Series::Within& within : series.within) {
        extent.add(within.y_low);
        extent.add(within.y_high);
      }
    }
    return padded(extent.range());
  }
  if (!panel.heat) return checked({0, round_up(panel.y.unit, greatest_height(panel))});
  for (const double edge : panel.heat->y_edges) extent.add(edge);
  return checked(extent.range());
}

Range colour_range(const HeatMap& heat) {
  if (heat.unit == Unit::share) return {0, 1};
  double most = 0;
  for (const std::vector<double>* cells : {&heat.cells, &heat.apart}) {
    for (const double cell : *cells) {
      if (std::isfinite(cell)) most = std::max(most, cell);
    }
  }
  if (heat.log) return checked({1, std::max(most, 2.0)});
  return checked({0, most > 0 ? most : 1});
}

std::size_t AddressRows::row_of(std::uint64_t bin) const {
  const auto found = std::lower_bound(bins.begin(), bins.end(), bin);
  assert(found != bins.end() && *found == bin);
  return rows[static_cast<std::size_t>(found - bins.begin())];
}

AddressRows address_rows(std::vector<std::uint64_t> bins, std::uint64_t bin_bytes) {
  AddressRows result{.bins = std::move(bins), .rows = {}, .edges = {}, .axis = {.title = "address"}};
  assert(bin_bytes != 0);
  auto& used = result.bins;
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  const std::uint64_t kept_gap = used.size() / 16 + 1;
  const auto break_room = static_cast<double>(used.size() / 40 + 1);
  double position = 0;
  std::vector<Tick> between;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const std::uint64_t gap = i == 0 ? 0 : used[i] - used[i - 1] - 1;
    if (gap > kept_gap) result.axis.breaks.push_back(position + break_room / 2);
    position += gap > kept_gap ? break_room : static_cast<double>(gap);
    const Tick tick{position, "0x" + output::hex(used[i] * bin_bytes)};
    if (i == 0 || gap > kept_gap)
      result.axis.ticks.push_back(tick);
    else if (i % (used.size() / 8 + 1) == 0)
      between.push_back(tick);
    if (result.edges.empty() || result.edges.back() < position) result.edges.push_back(position);
    result.rows.push_back(result.edges.size() - 1);
    result.edges.push_back(position + 1);
    position += 1;
  }
  assert(result.rows.size() == used.size() && std::is_sorted(result.edges.begin(), result.edges.end()));
  result.axis.ticks.insert(result.axis.ticks.end(), between.begin(), between.end());
  return result;
}

std::string_view unit_name(Unit unit) { return rules_of(unit).name; }

std::string tick_rules_json() {
  output::JsonWriter json;
  json.begin_object();
  for (const TickRules& rules : tick_rules) {
    json.begin_object(rules.name);
    json.field("base", rules.base);
    json.field("least_step", rules.least_step);
    json.begin_array("factors");
    for (const double factor : rules.factors) json.value(factor);
    json.end_array();
    json.begin_array("magnitudes");
    for (const Magnitude& magnitude : rules.magnitudes) {
      json.begin_array();
      json.value(magnitude.size);
      json.value(magnitude.name);
      json.end_array();
    }
    json.end_array();
    json.end_object();
  }
  json.end_object();
  return json.take();
}

}  // namespace cmt::picture
