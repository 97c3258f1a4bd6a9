/// Ratios of a cell's figures to those of the reference, with an interval for each.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cmtreplay/matrix/cell.h"

namespace cmt::replay {

/// A figure over that of the reference, with an interval. The ratio is in the interval with a confidence of 95 %. With
/// few runs the interval is their range, which is less certain.
struct Ratio {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();

  double ratio = none;
  double low = none, high = none;
  std::string interval = {};  ///< the kind of interval: "95 %" or "range of 3 runs"; empty: not known

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

/// The samples that a ratio is computed from: a ratio for each round (pairs), or the figure of every run.
struct RatioSamples {
  std::vector<double> pairs = {};                 ///< empty: the samples are no pairs
  std::vector<double> runs = {}, reference = {};  ///< if there are no pairs
  bool is_known() const { return !pairs.empty() || (!runs.empty() && !reference.empty()); }
};

/// The samples of a cell: times in pairs by rounds; peak memory, mean memory and fragmentation by runs.
RatioSamples time_samples(const Cell& cell);
RatioSamples memory_samples(const Cell& cell, std::uint64_t MemoryFigures::*figure);
RatioSamples before_teardown_samples(const Cell& cell);
RatioSamples fragmentation_samples(const Cell& cell);

/// The kind of an interval that holds with 95 %.
inline constexpr const char* interval_of_95 = "95 %";

/// The median of the pairs, or the ratio of the medians. The interval of 95 % is by bootstrap; with fewer than
/// runs_for_95 runs it is their range. Not known without samples.
Ratio ratio_of(const RatioSamples& samples);
/// The standard deviation of the logarithm of one round's ratio, for the geometric mean of several cells. NaN if a cell
/// has fewer than two pairs.
double log_deviation(const std::vector<RatioSamples>& cells);
/// The same ratio with the range, however many runs there are.
Ratio range_ratio(const RatioSamples& samples);

/// The geometric mean of the ratios of several cells. For each mean of the bootstrap the samples of every cell are
/// drawn anew. If a cell has too few runs, the interval is the mean of the ranges. Not known if a cell has no samples.
Ratio geometric_mean(const std::vector<RatioSamples>& cells);

}  // namespace cmt::replay
