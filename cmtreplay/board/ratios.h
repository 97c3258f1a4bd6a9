#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "cmtreplay/matrix/cell.h"

namespace cmt::replay {

/// A figure over that of the reference, with the interval in which it lies with 95 %.
struct Ratio {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();

  double ratio = none;
  double low = none, high = none;

  bool is_known() const { return ratio == ratio; }
};

template <class Visitor, output::DescribedAs<Ratio> R>
void describe(Visitor& field, R& ratio) {
  field("ratio", ratio.ratio, "to the reference's; null: not known");
  field("low", ratio.low, "of the interval in which it lies with 95 % (bootstrap over the runs)");
  field("high", ratio.high, "its other end");
}

/// The samples of which ratios are made. Pairs: one ratio for each round. Others: every run's figure.
struct RatioSamples {
  std::vector<double> pairs = {};                 ///< empty: not in pairs
  std::vector<double> runs = {}, reference = {};  ///< where not in pairs
  bool is_known() const { return !pairs.empty() || (!runs.empty() && !reference.empty()); }
};

/// Times by rounds; peak and mean memory, and fragmentation, by runs.
RatioSamples time_samples(const Cell& cell);
RatioSamples memory_samples(const Cell& cell, std::uint64_t MemoryFigures::*figure);
RatioSamples fragmentation_samples(const Cell& cell);

/// The median of the pairs, or the ratio of the medians. Not known without samples.
Ratio ratio_of(const RatioSamples& samples);

/// The geometric mean of the ratios of several cells. The samples of each are drawn anew for each of the bootstrap's
/// means. Not known where one cell has none.
Ratio geometric_mean(const std::vector<RatioSamples>& cells);

}  // namespace cmt::replay
