/// Divides a trace into a few hundred intervals, each with the measures of every call stack, for cmtreport's page.
///
/// The length of a trace is not known beforehand. So intervals are short at first. When there are intervals_max, each
/// two become one, and later intervals are twice as long.
///
///     |  1  |  2  |  3  |  4  |          the axis: events, or time where it was recorded
///     0     w     2w    3w    4w         moment k is the end of interval k; moment 0 is the start
///
/// An interval has the events after the previous moment, up to its own moment. Its peak is the first moment of most
/// live bytes in it. The moment before its first event counts too.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "cmt/event.h"
#include "cmtreport/model/changes.h"
#include "cmtreport/model/resident_samples.h"
#include "libcmt/heap/live_totals.h"
#include "libcmt/prefetch.h"

namespace cmt::report {

inline constexpr std::size_t intervals_max = 510;  // even: each two become one

/// The end of every axis: 146 years of nanoseconds. With this bound, no end of an interval overflows.
inline constexpr std::uint64_t position_max = std::uint64_t{1} << 62;

struct Interval {
  std::uint64_t last_event = 0;          ///< the last event up to its end, counted from 1
  std::uint64_t last_time_ns = unknown;  ///< of that event
  heap::LiveTotals live{};               ///< at its end
  heap::LiveTotals peak{};               ///< at its peak
  std::uint64_t peak_event = 0;          ///< the event that reached it
  std::uint64_t peak_time_ns = unknown;
  heap::LiveTotals allocated{};  ///< so far, by its end
  ResidentSample sample{};       ///< the last one up to its end
  PackedChanges changes{};
};

/// Collects intervals. Each stack with an event in the open interval has an accumulator, which is packed when the
/// interval ends. Most stacks have events in few intervals: the accumulators of 200,000 stacks of a compiler are some
/// 300 KB, and stay in the cache.
///
/// Memory: some 140 bytes for each stack of one interval, and 12 for each interval that a stack has events in. So the
/// stacks bound the memory, whatever the length of the trace.
class IntervalCollector {
 public:
  /// `first_width`: of an interval, on the axis.
  explicit IntervalCollector(std::uint64_t first_width) : width_(first_width), slots_(slots_min) {}

  /// Ends the intervals that end before an event. To be called first for each event. Positions never fall, and are at
  /// most position_max.
  void start_event(std::uint64_t position, std::uint64_t time_ns) {
    assert(position >= position_);
    position_ = position;
    if (position > end_) end_intervals();
    ++events_;
    time_ns_ = time_ns;
  }

  /// Takes a sample of the process's resident memory.
  void note_sample(const ResidentSample& sample) { sample_ = sample; }

  /// Count a block that a stack allocates, or a block of the stack that ends.
  void begin_block(KeyId key, std::uint64_t size, bool is_reallocated);
  Measures& end_block(KeyId key, std::uint64_t size);
  /// Returns the measures of a stack in the open interval, for figures that are no change of live blocks.
  Measures& measures_of(KeyId key) { return accumulator_of(key).measures; }

  /// Fetch the memory of a stack into the cache: prefetch_place() the place of its measures, prefetch() later these.
  void prefetch_place(KeyId key) const { cmt::prefetch(&slots_[home_slot(key)]); }
  void prefetch(KeyId key) const {
    const std::uint32_t place = slots_[home_slot(key)];
    if (place != 0) cmt::prefetch(&accumulators_[place - 1]);
  }

  const heap::LiveTotals& live() const { return live_; }
  std::uint64_t events() const { return events_; }

  /// Goes on to a position after the last event, up to which the process had what it has now. Before finish().
  void go_on_to(std::uint64_t position);
  /// Ends the last interval. To be called once; no more events may follow.
  void finish();
  /// Makes intervals longer until they have this width, the first width times a power of two. After finish().
  void widen_to(std::uint64_t width);
  /// Frees the measures of an interval. After the last widen_to().
  void drop_changes(std::size_t interval) { intervals_[interval].changes = {}; }

  std::uint64_t width() const { return width_; }
  /// The end of the open interval, on the axis.
  std::uint64_t open_end() const { return end_; }
  std::uint64_t end_position() const { return position_; }
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  struct alignas(64) Accumulator {  // what most events change is in its first line of the cache
    KeyId key = 0;
    std::uint32_t slot = 0;
    std::uint64_t saved_after = 0;  // as in heap::AtPeak
    Measures measures{};
  };

  static constexpr std::size_t slots_min = 1024;

  std::size_t home_slot(KeyId key) const { return (key * 0x9e3779b97f4a7c15 >> 32) & (slots_.size() - 1); }
  Accumulator& accumulator_of(KeyId key) {
    std::size_t slot = home_slot(key);
    for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
      Accumulator& accumulator = accumulators_[slots_[slot] - 1];
      if (accumulator.key == key) return accumulator;
    }
    return add_accumulator(key, slot);
  }
  Accumulator& add_accumulator(KeyId key, std::size_t slot);
  void double_slots();
  void save_peak(Accumulator& accumulator);
  void set_peak();
  void end_intervals();
  void end_interval();
  PackedChanges pack_accumulators();
  void join_pairs();
  Interval joined(const Interval& first, Interval second);

  std::uint64_t width_;
  std::uint64_t end_ = 0;  // of the open interval, on the axis
  std::uint64_t position_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t time_ns_ = unknown;  // of the last event
  ResidentSample sample_;            // the last one
  heap::LiveTotals live_;
  heap::LiveTotals allocated_;
  heap::LiveTotals peak_;  // of the open interval
  std::uint64_t peak_event_ = 0;
  std::uint64_t peak_time_ns_ = unknown;
  std::uint64_t peaks_ = 1;                // 0 would be a value that was never saved
  std::vector<Accumulator> accumulators_;  // of the open interval
  std::vector<std::uint32_t> slots_;       // by a hash of the key: a place in accumulators_ + 1; 0: free. Half are free
  PackedChanges packing_;                  // of the interval that is ending
  std::vector<Interval> intervals_;
};

}  // namespace cmt::report
