#include "cmtreport/model/intervals.h"

#include <algorithm>
#include <utility>

namespace cmt::report {

IntervalCollector::Accumulator& IntervalCollector::touch(KeyId key) {
  if (key >= index_.size()) index_.resize(std::max<std::size_t>(key + std::size_t{1}, index_.size() * 2));
  std::uint32_t& index = index_[key];
  if (index == 0) {
    accumulators_.push_back({.key = key});
    index = static_cast<std::uint32_t>(accumulators_.size());
  }
  Accumulator& accumulator = accumulators_[index - 1];
  if (!accumulator.is_touched) {
    accumulator.is_touched = true;
    touched_.push_back(index - 1);
  }
  return accumulator;
}

/// To be called before the live blocks of a stack change. Nothing is copied when a peak is reached, which most
/// allocations do while a heap grows.
void IntervalCollector::save_peak(Accumulator& accumulator) {
  if (accumulator.saved_after == peaks_) return;
  accumulator.saved_after = peaks_;
  Measures& measures = accumulator.measures;
  measures[Measure::interval_peak_bytes] = measures[Measure::live_bytes];
  measures[Measure::interval_peak_blocks] = measures[Measure::live_blocks];
}

void IntervalCollector::set_peak() {
  ++peaks_;
  peak_ = live_;
  peak_event_ = events_;
  peak_time_ns_ = time_ns_;
}

void IntervalCollector::begin_block(KeyId key, std::uint64_t size, bool is_reallocated) {
  Accumulator& accumulator = touch(key);
  save_peak(accumulator);
  Measures& measures = accumulator.measures;
  measures[Measure::allocated_bytes] += size;
  ++measures[Measure::allocated_blocks];
  measures[Measure::live_bytes] += size;
  ++measures[Measure::live_blocks];
  measures[Measure::reallocated_blocks] += is_reallocated;
  allocated_.add_block(size);
  live_.add_block(size);
  if (live_.bytes > peak_.bytes) set_peak();
}

Measures& IntervalCollector::end_block(KeyId key, std::uint64_t size) {
  Accumulator& accumulator = touch(key);
  save_peak(accumulator);
  accumulator.measures[Measure::live_bytes] -= size;
  --accumulator.measures[Measure::live_blocks];
  live_.remove_block(size);
  return accumulator.measures;
}

void IntervalCollector::end_intervals() {
  if (end_ == 0) {
    end_ = width_;
  } else {
    end_interval();
    end_ += width_;
  }
  while ((position_ - 1) / width_ >= intervals_max) {  // the number of the event's interval, from 0
    join_pairs();
    end_ = (intervals_.size() + 1) * width_;
  }
  for (; end_ < position_; end_ += width_) end_interval();
}

void IntervalCollector::pack_touched(PackedChanges& changes) {
  for (const std::uint32_t index : touched_) {
    Accumulator& accumulator = accumulators_[index];
    save_peak(accumulator);
    changes.append(accumulator.key, accumulator.measures);
    accumulator = {.key = accumulator.key};
  }
  touched_.clear();
  changes.shrink();
}

void IntervalCollector::end_interval() {
  Interval interval{.last_event = events_,
                    .live = live_,
                    .peak = peak_,
                    .peak_event = peak_event_,
                    .peak_time_ns = peak_time_ns_,
                    .allocated = allocated_,
                    .resident = resident_};
  pack_touched(interval.changes);
  intervals_.push_back(std::move(interval));
  ++peaks_;
  peak_ = live_;
  peak_event_ = events_;
  peak_time_ns_ = time_ns_;
}

/// No interval is open.
void IntervalCollector::join_pairs() {
  if (intervals_.size() % 2 != 0) end_interval();
  const std::size_t count = intervals_.size() / 2;
  for (std::size_t i = 0; i < count; ++i) intervals_[i] = joined(intervals_[2 * i], std::move(intervals_[2 * i + 1]));
  intervals_.resize(count);
  width_ *= 2;
}

/// Adds up two intervals. The peak of both is the higher one, the first where they are as high.
Interval IntervalCollector::joined(const Interval& first, Interval second) {
  const bool is_first = first.peak.bytes >= second.peak.bytes;
  const auto add = [&](KeyId key, const SparseMeasures& more, bool is_of_first) {
    Measures& sum = touch(key).measures;
    // Live at the peak less live at the start of both: of the first, what changed in it counts before the second's.
    if (is_of_first == is_first) {
      sum[Measure::interval_peak_bytes] += more[Measure::interval_peak_bytes];
      sum[Measure::interval_peak_blocks] += more[Measure::interval_peak_blocks];
    } else if (is_of_first) {
      sum[Measure::interval_peak_bytes] += more[Measure::live_bytes];
      sum[Measure::interval_peak_blocks] += more[Measure::live_blocks];
    }
    more.for_each([&sum](std::size_t i, std::uint64_t value) {
      const auto measure = static_cast<Measure>(i);
      if (measure != Measure::interval_peak_bytes && measure != Measure::interval_peak_blocks) sum[measure] += value;
    });
  };
  first.changes.for_each([&](KeyId key, const SparseMeasures& more) { add(key, more, true); });
  second.changes.for_each([&](KeyId key, const SparseMeasures& more) { add(key, more, false); });
  for (const std::uint32_t index : touched_) accumulators_[index].saved_after = peaks_;  // it is known already
  Interval both = std::move(second);
  if (is_first) {
    both.peak = first.peak;
    both.peak_event = first.peak_event;
    both.peak_time_ns = first.peak_time_ns;
  }
  both.changes = {};
  pack_touched(both.changes);
  return both;
}

void IntervalCollector::finish() {
  if (events_ != 0) end_interval();
  accumulators_.shrink_to_fit();
}

void IntervalCollector::widen_to(std::uint64_t width) {
  while (width_ < width) join_pairs();
}

}  // namespace cmt::report
