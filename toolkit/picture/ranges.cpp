#include "toolkit/picture/ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "toolkit/picture/axis.h"

namespace cmt::output {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

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

void add_x(Extent& extent, const Panel& panel) {
  for (const Series& series : panel.series) {
    for (const double x : series.x) extent.add(x);
  }
  if (!panel.heat) return;
  for (const double edge : panel.heat->x_edges) extent.add(edge);
}

/// The greatest height of what is drawn: of lines each, of bands their sum.
double greatest(const Panel& panel) {
  Extent extent;
  std::vector<double> sums;
  for (const Series& series : panel.series) {
    const bool band = series.form == Series::Form::band;
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

Range x_range(const Picture& picture, const Panel& panel) {
  const Axis& axis = panel.x;
  const bool shared = std::all_of(picture.panels.begin(), picture.panels.end(), [&](const Panel& other) {
    return other.x.title == axis.title && other.x.unit == axis.unit && other.x.log == axis.log;
  });
  Extent extent;
  if (!shared) {
    add_x(extent, panel);
  } else {
    for (const Panel& other : picture.panels) add_x(extent, other);
  }
  return extent.range();
}

Range y_range(const Panel& panel) {
  if (!panel.heat) return {0, round_up(panel.y.unit, greatest(panel))};
  Extent extent;
  for (const double edge : panel.heat->y_edges) extent.add(edge);
  return extent.range();
}

Range colour_range(const HeatMap& heat) {
  if (heat.unit == Unit::share) return {0, 1};
  double most = 0;
  for (const std::vector<double>* cells : {&heat.cells, &heat.apart}) {
    for (const double cell : *cells) {
      if (std::isfinite(cell)) most = std::max(most, cell);
    }
  }
  if (heat.log) return {1, std::max(most, 2.0)};
  return {0, most > 0 ? most : 1};
}

}  // namespace cmt::output
