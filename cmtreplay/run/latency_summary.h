#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cmtreplay/run/control_region.h"

namespace cmt::replay {

/// How long calls of one kind took, in nanoseconds, less what reading the clock takes.
struct LatencySummary {
  std::uint64_t samples = 0;
  double p50 = 0, p90 = 0, p99 = 0, p999 = 0, max = 0;
};

/// The kinds of calls that are told apart, in the order of enum latency_kind.
inline constexpr std::array<std::string_view, latency_kinds> latency_names{"malloc", "free", "calloc", "realloc",
                                                                           "aligned"};

/// Latencies of one allocator, of all threads and runs.
class LatencyCounts {
 public:
  /// Adds what one run has seen.
  void add(const ControlRegion& results);

  std::uint64_t samples() const;
  LatencySummary summary(latency_kind kind) const;

 private:
  using Counts = std::array<std::uint64_t, latency_buckets>;

  double quantile_ticks(const Counts& counts, std::uint64_t rank) const;
  double nanoseconds(double ticks) const;

  std::array<Counts, latency_kinds> counts_{};
  std::array<std::uint64_t, latency_kinds> max_ticks_{};
  std::uint64_t empty_ticks_ = UINT64_MAX;
  double ns_per_tick_ = 0;
};

}  // namespace cmt::replay
