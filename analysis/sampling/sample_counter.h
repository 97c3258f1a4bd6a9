/// Counts the allocations of a sampled trace by call stack, thread, size or phase, as UseCounter does those of a full
/// one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/fates/live_blocks.h"
#include "analysis/fates/use.h"
#include "analysis/sampling/estimate.h"
#include "libcmt/heap/live_totals.h"
#include "toolkit/trace/slice.h"

namespace cmt::analysis {

/// Returns the sampling interval that a trace states, in bytes; 0 if it is a full one. Throws FormatError if it states
/// no number of 1 or more.
std::uint64_t sampling_interval(const Header& header, const std::string& path);

/// The estimated allocations of a stack, or of many. These figures alone follow from samples: the ages of blocks and
/// their ends need all events.
struct SampledUse {
  using Metric = analysis::Metric;  ///< bytes, blocks, peak or live
  static constexpr Metric metric_default = Metric::peak;

  Estimate allocated{};
  Estimate peak{};  ///< live when the estimated live bytes of the whole trace, or of the slice, were at their peak
  Estimate live{};  ///< at the end

  SampledUse& operator+=(const SampledUse& more);
  const Estimate& estimate(Metric metric) const;
  std::int64_t metric(Metric metric) const;
  bool operator==(const SampledUse&) const = default;
};

/// Returns whether a metric can be estimated from samples.
constexpr bool is_estimated(Metric metric) { return metric <= Metric::live; }

/// The sets that have a sample, with their estimates.
struct SampledUses {
  struct Entry {
    KeyId key;
    SampledUse use;
    std::string name{};  ///< empty for stacks
  };
  std::vector<Entry> entries;  ///< by rising key; allocations whose stack is not known have key 0
  SampledUse total;
  std::uint64_t first_interval = 0, interval = 0;  ///< at the start, and at the end: it only rises
  std::uint64_t events = 0;                        ///< of the slice
  std::uint64_t peak_event = 0;
  std::uint64_t peak_time_ns = unknown;
};

/// Follows the events of a sampled trace: the interval, the live samples, and the estimates of each set.
///
///     SampleCounter counter(By::function, sampling_interval(header, path), {}, complaints);
///     trace.for_each([&](const Event& event) { counter.count_event(event); });
///     const SampledUses uses = counter.finish();
///
/// Allocated bytes have the weight at the interval when they were allocated. Live bytes have the weight at the interval
/// now, since the recorder thins the live samples when the interval rises. Memory: some 40 bytes a live sample, 300
/// bytes a set.
class SampleCounter {
 public:
  /// Borrows `complaints`. `interval`: in bytes, at the start.
  SampleCounter(By by, std::uint64_t interval, std::optional<trace::SliceRange> slice, command::Complaints& complaints);

  /// Counts an event. Returns false after the end of the slice: the caller need not read on.
  bool count_event(const Event& event);

  std::uint64_t interval() const { return uses_.interval; }
  /// The estimate of what is live after the last event.
  const Estimate& live() const { return live_; }

  /// Returns the estimates. To be called once. Throws FormatError, with the trace's path, if it has no such slice.
  SampledUses finish(const std::string& path = {});

 private:
  struct Block {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;
    KeyId key = 0;
  };
  struct Counter {
    Estimate allocated;
    heap::AtPeak<Estimate> live;
  };

  Counter& counter_of(KeyId key);
  void raise_interval(std::uint64_t interval);
  void begin_peak(std::uint64_t time_ns);
  void make_sample(const Event& event, KeyId key);

  AllocationKeys keys_;
  std::optional<trace::SliceProgress> slice_;
  trace::SliceProgress::Place place_ = trace::SliceProgress::Place::inside;
  LiveBlocks<Block> blocks_;
  std::vector<std::uint32_t> index_;  // by key: its place in counters_ + 1; 0: none
  std::vector<Counter> counters_;
  Estimate live_;
  double peak_bytes_ = 0;
  std::uint64_t peaks_ = 1;  // 0 would be a value that was never saved
  std::uint64_t read_ = 0;   // events, those before the slice too
  SampledUses uses_;
};

}  // namespace cmt::analysis
