// Collects, packs and joins the intervals that intervals.h describes.
#include "cmtreport/model/intervals.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace cmt::report {

/// Adds an accumulator. `slot`: the free slot at which the key's search has ended.
IntervalCollector::Accumulator& IntervalCollector::add_accumulator(KeyId key, std::size_t slot) {
  assert(slots_[slot] == 0);
  accumulators_.push_back({.key = key, .slot = static_cast<std::uint32_t>(slot)});
  slots_[slot] = static_cast<std::uint32_t>(accumulators_.size());
  if (accumulators_.size() * 2 > slots_.size()) double_slots();
  assert(accumulators_.size() * 2 <= slots_.size());
  return accumulators_.back();
}

void IntervalCollector::double_slots() {
  slots_.assign(slots_.size() * 2, 0);
  std::uint32_t place = 0;
  for (Accumulator& each : accumulators_) {
    std::size_t slot = home_slot(each.key);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = ++place;
    each.slot = static_cast<std::uint32_t>(slot);
  }
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
  Accumulator& accumulator = accumulator_of(key);
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
  Accumulator& accumulator = accumulator_of(key);
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

/// Packs all accumulators and removes them.
PackedChanges IntervalCollector::pack_accumulators() {
  packing_.clear();
  for (Accumulator& accumulator : accumulators_) {
    save_peak(accumulator);
    packing_.append(accumulator.key, accumulator.measures);
    slots_[accumulator.slot] = 0;
  }
  accumulators_.clear();
  return packing_;  // a copy has no more memory than it needs
}

void IntervalCollector::end_interval() {
  Interval interval{.last_event = events_,
                    .last_time_ns = time_ns_,
                    .live = live_,
                    .peak = peak_,
                    .peak_event = peak_event_,
                    .peak_time_ns = peak_time_ns_,
                    .allocated = allocated_,
                    .sample = sample_,
                    .changes = pack_accumulators()};
  intervals_.push_back(std::move(interval));
  assert(intervals_.size() <= intervals_max);
  ++peaks_;
  peak_ = live_;
  peak_event_ = events_;
  peak_time_ns_ = time_ns_;
}

/// Joins each two intervals. No interval is open.
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
    Measures& sum = accumulator_of(key).measures;
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
  for (Accumulator& each : accumulators_) each.saved_after = peaks_;  // it is known already
  Interval both = std::move(second);
  if (is_first) {
    both.peak = first.peak;
    both.peak_event = first.peak_event;
    both.peak_time_ns = first.peak_time_ns;
  }
  both.changes = pack_accumulators();
  return both;
}

void IntervalCollector::go_on_to(std::uint64_t position) {
  if (events_ == 0 || position <= position_) return;
  position_ = position;
  if (position > end_) end_intervals();
}

void IntervalCollector::finish() {
  if (events_ != 0) end_interval();
  accumulators_ = {};
  slots_ = std::vector<std::uint32_t>(slots_min);
}

void IntervalCollector::widen_to(std::uint64_t width) {
  while (width_ < width) join_pairs();
}

}  // namespace cmt::report
