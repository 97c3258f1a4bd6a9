// Reduces series and maps to what a picture of a given width can show, as svg_parts.h describes.

#include "toolkit/picture/svg_parts.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <utility>

namespace cmt::picture {
namespace {

/// The indexes of the points to keep: of each column the first, the lowest, the highest and the last.
std::vector<std::size_t> kept_points(const std::vector<double>& x, const std::vector<double>& y, double low,
                                     double high, std::size_t columns) {
  std::vector<std::size_t> chosen;
  const std::size_t size = std::min(x.size(), y.size());
  const auto column = [&](double at) {
    return high > low ? static_cast<std::size_t>((at - low) / (high - low) * static_cast<double>(columns)) : 0;
  };
  const auto is_visible = [&](std::size_t i) {
    return std::isfinite(x[i]) && std::isfinite(y[i]) && x[i] >= low && x[i] <= high;
  };
  for (std::size_t i = 0; i < size;) {
    if (!is_visible(i)) {
      ++i;
      continue;
    }
    std::size_t least = i, greatest = i, last = i;
    const std::size_t first = i;
    for (; i < size && (!is_visible(i) || column(x[i]) == column(x[first])); ++i) {
      if (!is_visible(i)) continue;
      if (y[i] < y[least]) least = i;
      if (y[i] > y[greatest]) greatest = i;
      last = i;
    }
    std::size_t four[] = {first, least, greatest, last};
    std::sort(std::begin(four), std::end(four));
    chosen.insert(chosen.end(), std::begin(four), std::unique(std::begin(four), std::end(four)));
  }
  return chosen;
}

Series points_at(const Series& series, const std::vector<double>& x, const std::vector<std::size_t>& chosen) {
  Series picked{series.name, {}, {}, series.form, {}, series.look};
  for (const std::size_t i : chosen) {
    assert(i < x.size());
    picked.add(x[i], i < series.y.size() && std::isfinite(series.y[i]) ? std::max(series.y[i], 0.0) : 0);
  }
  return picked;
}

/// Each n-th edge, and the last.
std::vector<double> thinned_edges(const std::vector<double>& edges, std::size_t n) {
  std::vector<double> kept;
  for (std::size_t i = 0; i + 1 < edges.size(); i += n) kept.push_back(edges[i]);
  if (!edges.empty()) kept.push_back(edges.back());
  return kept;
}

}  // namespace

Series downsample(const Series& series, double low, double high, std::size_t columns) {
  Series seen{series.name, {}, {}, series.form, {}, series.look};
  for (const std::size_t i : kept_points(series.x, series.y, low, high, columns)) seen.add(series.x[i], series.y[i]);
  return seen;
}

std::vector<Series> downsample_bands(const std::vector<Series>& bands, double low, double high, std::size_t columns) {
  if (bands.empty()) return {};
  const std::vector<double>& x = bands.front().x;
  std::vector<double> sums(x.size());
  for (const Series& band : bands) {
    for (std::size_t i = 0; i < std::min(sums.size(), band.y.size()); ++i) {
      if (std::isfinite(band.y[i])) sums[i] += std::max(band.y[i], 0.0);
    }
  }
  const std::vector<std::size_t> chosen = kept_points(x, sums, low, high, columns);
  std::vector<Series> picked;
  for (const Series& band : bands) picked.push_back(points_at(band, x, chosen));
  return picked;
}

std::vector<Series> downsample(const std::vector<Series>& series, double low, double high, std::size_t columns) {
  std::vector<Series> bands;
  std::copy_if(series.begin(), series.end(), std::back_inserter(bands), is_band);
  bands = downsample_bands(bands, low, high, columns);
  auto band = bands.begin();
  std::vector<Series> seen;
  for (const Series& each : series)
    seen.push_back(is_band(each) ? std::move(*band++) : is_points(each) ? each : downsample(each, low, high, columns));
  assert(band == bands.end());
  return seen;
}

HeatMap downsample(const HeatMap& heat, std::size_t most) {
  assert(most != 0);
  assert(heat.cells.size() == heat.columns() * heat.rows());
  assert(heat.apart.empty() || heat.apart.size() == heat.columns());
  const std::size_t wide = heat.columns() / most + 1;
  const std::size_t high = heat.rows() / most + 1;
  if (wide == 1 && high == 1) return heat;
  HeatMap seen = heat;
  seen.x_edges = thinned_edges(heat.x_edges, wide);
  seen.y_edges = thinned_edges(heat.y_edges, high);
  seen.cells.assign(seen.columns() * seen.rows(), 0);
  seen.apart.assign(heat.apart.empty() ? 0 : seen.columns(), 0);
  for (std::size_t row = 0; row < heat.rows(); ++row) {
    for (std::size_t column = 0; column < heat.columns(); ++column) {
      double& cell = seen.cells[row / high * seen.columns() + column / wide];
      cell = std::max(cell, heat.at(column, row));
    }
  }
  for (std::size_t column = 0; column < heat.apart.size(); ++column) {
    double& cell = seen.apart[column / wide];
    cell = std::max(cell, heat.apart[column]);
  }
  return seen;
}

}  // namespace cmt::picture
