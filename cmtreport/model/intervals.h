/// A trace as a few hundred intervals, each with what every call stack did in it.
///
/// The length of a trace is not known beforehand. So intervals are short at first; when there are intervals_max, each
/// two become one, and those that follow are twice as long.
///
///     |  1  |  2  |  3  |  4  |          the axis: events, or time where it was recorded
///     0     w     2w    3w    4w         moment k is the end of interval k; moment 0 is the start
///
/// An interval has the events after the moment before it, up to its own moment. Its peak is the first moment of most
/// live bytes in it, that before its first event included.
#pragma once

#include <cstdint>
#include <vector>

#include "cmt/event.h"
#include "cmtreport/model/changes.h"
#include "libcmt/heap/live_totals.h"

namespace cmt::report {

inline constexpr std::size_t intervals_max = 510;  // even: each two become one

/// The end of every axis: 146 years of nanoseconds. So no end of an interval overflows.
inline constexpr std::uint64_t position_max = std::uint64_t{1} << 62;

struct Interval {
  std::uint64_t last_event = 0;  ///< the last event up to its end, counted from 1
  heap::LiveTotals live{};       ///< at its end
  heap::LiveTotals peak{};       ///< at its peak
  std::uint64_t peak_event = 0;  ///< the event that reached it
  std::uint64_t peak_time_ns = unknown;
  heap::LiveTotals allocated{};      ///< so far, by its end
  std::uint64_t resident = unknown;  ///< of the process, at the last sample up to its end
  PackedChanges changes{};
};

/// Collects intervals. The measures of stacks that the open interval has touched are summed up in one accumulator for
/// each stack, and packed when it ends. Memory: some 150 bytes a stack, and 12 for each interval that a stack did
/// something in; so it is bounded by the stacks, whatever the length of the trace.
class IntervalCollector {
 public:
  /// `first_width`: of an interval, on the axis.
  explicit IntervalCollector(std::uint64_t first_width) : width_(first_width) {}

  /// To be called for each event, first: ends the intervals that end before it. Positions never fall, and are at most
  /// position_max.
  void start_event(std::uint64_t position, std::uint64_t time_ns) {
    position_ = position;
    if (position > end_) end_intervals();
    ++events_;
    time_ns_ = time_ns;
  }

  /// A sample of the process's resident memory.
  void note_resident(std::uint64_t bytes) { resident_ = bytes; }

  /// A stack allocates, or a block of it ends.
  void begin_block(KeyId key, std::uint64_t size, bool is_reallocated);
  Measures& end_block(KeyId key, std::uint64_t size);
  /// For a figure that is no change of live blocks.
  Measures& measures_of(KeyId key) { return touch(key).measures; }

  /// Fetch the memory of a stack into the cache: first what says where its measures are, later these.
  void prefetch_place(KeyId key) const {
    if (key < index_.size()) __builtin_prefetch(&index_[key]);
  }
  void prefetch(KeyId key) const {
    const std::uint32_t place = key < index_.size() ? index_[key] : 0;
    if (place != 0) __builtin_prefetch(&accumulators_[place - 1], 1);
  }

  const heap::LiveTotals& live() const { return live_; }
  std::uint64_t events() const { return events_; }

  /// Ends the last interval. To be called once; no more events may follow.
  void finish();
  /// Makes intervals longer until they have this width, the first one times a power of two. After finish().
  void widen_to(std::uint64_t width);

  std::uint64_t width() const { return width_; }
  /// Of the open interval, on the axis.
  std::uint64_t open_end() const { return end_; }
  std::uint64_t end_position() const { return position_; }
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  struct alignas(64) Accumulator {  // what most events change is in its first line of the cache
    KeyId key = 0;
    bool is_touched = false;
    std::uint64_t saved_after = 0;  // as in heap::AtPeak
    Measures measures{};
  };

  Accumulator& touch(KeyId key);
  void save_peak(Accumulator& accumulator);
  void set_peak();
  void end_intervals();
  void end_interval();
  void pack_touched(PackedChanges& changes);
  void join_pairs();
  Interval joined(const Interval& first, Interval second);

  std::uint64_t width_;
  std::uint64_t end_ = 0;  // of the open interval, on the axis
  std::uint64_t position_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t time_ns_ = unknown;  // of the last event
  std::uint64_t resident_ = unknown;
  heap::LiveTotals live_;
  heap::LiveTotals allocated_;
  heap::LiveTotals peak_;  // of the open interval
  std::uint64_t peak_event_ = 0;
  std::uint64_t peak_time_ns_ = unknown;
  std::uint64_t peaks_ = 1;           // 0 would be a value that was never saved
  std::vector<std::uint32_t> index_;  // by key: its place in accumulators_ + 1; 0: none
  std::vector<Accumulator> accumulators_;
  std::vector<std::uint32_t> touched_;
  std::vector<Interval> intervals_;
};

}  // namespace cmt::report
