/// Medians with intervals, outliers, and latencies of single calls.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "cmtreplay/run/control/control_region.h"
#include "toolkit/output/fields.h"

namespace cmt::replay {

/// Median and range of one figure over several runs.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
  std::vector<std::uint64_t> samples = {};  ///< in the order of the runs
};

template <class Visitor, output::DescribedAs<Spread> S>
void describe(Visitor& field, S& spread) {
  field("median", spread.median, "of all runs");
  field("min", spread.min, "the least of any run");
  field("max", spread.max, "the most of any run");
  field("samples", spread.samples, "in the order of the runs");
}

/// The spread of samples. The median of an even number is the mean of the middle two. Without samples all figures are
/// 0.
Spread spread_of(std::vector<std::uint64_t> samples);

/// The median of one or more samples, which it reorders. The median of an even number is the mean of the middle two.
double median_of(std::vector<double>& samples);

/// The mean of a figure over time, between whose samples it is taken to change evenly.
struct MeanOverTime {
  double area = 0, span = 0;
  std::uint64_t last = 0;

  void add(double passed, std::uint64_t now) {
    area += passed * (static_cast<double>(last) + static_cast<double>(now)) / 2;
    span += passed;
    last = now;
  }
  std::uint64_t mean() const { return span > 0 ? static_cast<std::uint64_t>(area / span) : last; }
};

/// The least number of samples for an interval of 95 %. Five are too few: all of them are on one side of the median
/// once in 16 times.
inline constexpr std::size_t runs_for_95 = 6;

/// An interval that contains the median of a figure, with some confidence.
struct Interval {
  double low = 0;
  double high = 0;
};

template <class Visitor, output::DescribedAs<Interval> I>
void describe(Visitor& field, I& interval) {
  field("low", interval.low,
        "of the interval in which the median lies with 95 %, by bootstrap; of fewer than 6 runs their range");
  field("high", interval.high, "its other end");
}

/// The interval of the median of one or more samples, with a confidence of 95 %. It is made of percentiles of medians
/// of samples that are drawn from these with replacement (bootstrap; Efron 1979). The seed is always the same.
Interval bootstrap_median(const std::vector<std::uint64_t>& samples);

/// The interval of the median of the distribution that the samples come from, whatever it is (the interval of the sign
/// test). It is from the n-th least to the n-th largest sample. n follows from the binomial distribution of the number
/// of samples below the median. Returns nothing if there are too few samples for the confidence.
std::optional<Interval> median_interval(std::vector<double> samples, double confidence);

/// The number of samples that are far from the median. A sample is far if 0.6745 times its distance is above 3.5 times
/// the median of all distances (the modified z-score of Iglewicz and Hoaglin, 1993).
std::size_t count_outliers(const std::vector<std::uint64_t>& samples);

/// The durations of one kind of call in nanoseconds, less the duration of reading the clock. NaN without samples.
struct LatencySummary {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();

  std::uint64_t samples = 0;
  double p50 = none, p90 = none, p99 = none, p999 = none, max = none;
};

template <class Visitor, output::DescribedAs<LatencySummary> Summary>
void describe(Visitor& field, Summary& summary) {
  field("samples", summary.samples, "calls that were timed, one in 64");
  field("p50_ns", summary.p50, "half of the calls took no longer; null: none was timed");
  field("p90_ns", summary.p90, "90 % of them took no longer");
  field("p99_ns", summary.p99, "99 % of them");
  field("p999_ns", summary.p999, "99.9 % of them");
  field("max_ns", summary.max, "the longest");
}

/// The latencies of one allocator, over all threads and runs.
class LatencyCounts {
 public:
  /// Adds the latencies of one run.
  void add(const ControlRegion& results);

  std::uint64_t samples() const;
  LatencySummary summary(latency_kind kind) const;

  /// A duration in nanoseconds, and how rare it is. One in `one_in` samples took at least as long (2: half of them).
  /// tail() sorts these points by rising durations.
  struct TailPoint {
    double one_in = 1;
    double ns = 0;
  };
  std::vector<TailPoint> tail(latency_kind kind) const;

 private:
  using Counts = std::array<std::uint64_t, latency_buckets>;

  double quantile_ticks(const Counts& counts, std::uint64_t rank) const;
  double nanoseconds(double ticks) const;

  std::array<Counts, latency_kinds> counts_{};
  std::array<std::uint64_t, latency_kinds> max_ticks_{};
  std::uint64_t empty_ticks_ = UINT64_MAX;
  double ns_per_tick_ = 0;
};

template <class Visitor, output::DescribedAs<LatencyCounts> Counts>
void describe(Visitor& field, Counts& counts) {
  field("malloc", counts.summary(latency_malloc), "of malloc and operator new");
  field("free", counts.summary(latency_free), "of free and operator delete");
  field("calloc", counts.summary(latency_calloc), "of calloc");
  field("realloc", counts.summary(latency_realloc), "of realloc and reallocarray");
  field("aligned", counts.summary(latency_aligned), "aligned_alloc, posix_memalign, memalign, valloc, pvalloc");
}

}  // namespace cmt::replay
