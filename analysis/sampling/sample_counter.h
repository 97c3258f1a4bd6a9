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

/// Returns whether a metric can be estimated from samples. The others need all events.
constexpr bool is_estimated(Metric metric) { return metric <= Metric::live || metric == Metric::growth; }

/// Throws FormatError, with the trace's path, if a report of a sampled trace cannot have this order, or this clock.
void refuse_unestimated(const std::string& path, Metric metric, heap::Clock::Unit clock);

/// Follows the events of a sampled trace: the interval, the live samples, and the estimates of each set.
///
///     SampleCounter counter(By::function, header.sampled(), {}, complaints);
///     trace.for_each([&](const Event& event) { counter.count_event(event); });
///     const Uses uses = counter.finish();     each with `use.sampled`, of the sets that have a sample
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

  /// The sampling interval now, in bytes. It only rises.
  std::uint64_t interval() const { return live_.interval; }
  /// The estimate of what is live after the last event.
  const Estimate& live() const { return live_; }

  /// Returns the estimates. To be called once. Throws FormatError, with the trace's path, if it has no such slice.
  Uses finish(const std::string& path = {});

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
    Estimate at_begin{};
  };

  Counter& counter_of(KeyId key);
  void raise_interval(std::uint64_t interval);
  void begin_slice(std::uint64_t time_ns);
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
  std::uint64_t last_time_ns_ = unknown;
  Uses uses_;
};

}  // namespace cmt::analysis
