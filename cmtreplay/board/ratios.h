#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cmtreplay/matrix/cell.h"

namespace cmt::replay {

/// A figure over that of the reference, with an interval: that in which it lies with 95 %, or, of a few runs, their
/// range, which is not so certain.
struct Ratio {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();

  double ratio = none;
  double low = none, high = none;
  std::string interval = {};  ///< what they are: "95 %", "range of 3 runs"; empty: not known

  bool is_known() const { return ratio == ratio; }
};

template <class Visitor, output::DescribedAs<Ratio> R>
void describe(Visitor& field, R& ratio) {
  field("ratio", ratio.ratio, "to the reference's; null: not known");
  field("low", ratio.low, "of an interval: see interval");
  field("high", ratio.high, "its other end");
  field(
      "interval", ratio.interval,
      "95 %: in which it lies with that confidence, by bootstrap over the runs (of a gate by ranks); range of N runs: "
      "from "
      "the least run over the reference's most to the most over the least, which has no confidence; empty: not known");
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

/// "95 %", as the word for an interval.
inline constexpr const char* interval_of_95 = "95 %";

/// The median of the pairs, or the ratio of the medians, with 95 % by bootstrap; of fewer than runs_for_95 runs with
/// their range. Not known without samples.
Ratio ratio_of(const RatioSamples& samples);
/// The same with the range, however many runs there are.
Ratio range_ratio(const RatioSamples& samples);

/// The geometric mean of the ratios of several cells. The samples of each are drawn anew for each of the bootstrap's
/// means. Where a cell has too few runs, the interval is the mean of the ranges. Not known where one cell has none.
Ratio geometric_mean(const std::vector<RatioSamples>& cells);

}  // namespace cmt::replay
