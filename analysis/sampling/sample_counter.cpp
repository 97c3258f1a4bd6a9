// Follows the events of a sampled trace, as sample_counter.h describes.
#include "analysis/sampling/sample_counter.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "analysis/stacks/contributors.h"
#include "cmt/error.h"

namespace cmt::analysis {

void refuse_unestimated(const std::string& path, Metric metric, heap::Clock::Unit clock) {
  if (is_estimated(metric) && clock == heap::Clock::Unit::events) return;
  throw FormatError(path, "a sampled trace lacks most blocks, so " +
                              (is_estimated(metric) ? "lifetimes" : "\"" + std::string(name(metric)) + "\"") +
                              " cannot be estimated; bytes, blocks, peak, live and growth can");
}

SampleCounter::SampleCounter(By by, std::uint64_t interval, std::optional<trace::SliceRange> slice,
                             command::Complaints& complaints)
    : keys_(by), blocks_(heap::Clock::Unit::events, complaints) {
  assert(interval != 0);
  live_.interval = interval;
  if (!slice) return;
  slice_.emplace(*std::move(slice));
  place_ = trace::SliceProgress::Place::before;
}

SampleCounter::Counter& SampleCounter::counter_of(KeyId key) {
  if (key >= index_.size()) index_.resize(std::max<std::size_t>(key + std::size_t{1}, index_.size() * 2));
  std::uint32_t& index = index_[key];
  if (index == 0) {
    counters_.emplace_back();
    counters_.back().allocated.interval = counters_.back().live.change(0).interval = live_.interval;
    index = static_cast<std::uint32_t>(counters_.size());
  }
  return counters_[index - 1];
}

/// The recorder has ended the samples that are none at the larger interval. So the others count for more.
void SampleCounter::raise_interval(std::uint64_t interval) {
  if (interval <= live_.interval) return;
  live_ = {.interval = interval};
  for (Counter& counter : counters_) counter.live.change(peaks_) = live_;
  blocks_.for_each([this](const Block& block) {
    counter_of(block.key).live.change(peaks_).add(weight_of(block.size, live_.interval));
  });
  for (const Counter& counter : counters_) live_ += counter.live.now();
}

void SampleCounter::begin_slice(std::uint64_t time_ns) {
  for (Counter& counter : counters_) counter.at_begin = counter.live.now();
  uses_.begin_time_ns = time_ns;
  begin_peak(last_time_ns_);
}

void SampleCounter::begin_peak(std::uint64_t time_ns) {
  peak_bytes_ = live_.bytes;
  ++peaks_;
  uses_.peak_event = read_;
  uses_.peak_time_ns = time_ns;
}

bool SampleCounter::count_event(const Event& event) {
  using Place = trace::SliceProgress::Place;
  if (slice_) {
    const Place before = std::exchange(place_, slice_->next(event));
    if (before == Place::before && place_ != Place::before) begin_slice(event.time_ns);
    if (place_ == Place::after) return false;
  }
  ++read_;
  last_time_ns_ = event.time_ns;
  uses_.events += place_ == Place::inside;
  if (event.kind == Kind::sampling_interval) raise_interval(event.size);
  const KeyId key = keys_.key_of(event);
  blocks_.start_event(event);
  if (event.ends_block()) {
    if (const Block* const block = blocks_.end_block(event.old_tag)) {
      const Weight weight = weight_of(block->size, live_.interval);
      live_.remove(weight);
      counter_of(block->key).live.change(peaks_).remove(weight);
    }
  }
  if (event.makes_block() && event.bytes() != 0) make_sample(event, key);
  return true;
}

void SampleCounter::make_sample(const Event& event, KeyId key) {
  if (!blocks_.begin_block(event, {.key = key})) return;
  const Weight weight = weight_of(event.bytes(), live_.interval);
  Counter& counter = counter_of(key);
  counter.live.change(peaks_).add(weight);
  live_.add(weight);
  if (place_ != trace::SliceProgress::Place::inside) return;
  counter.allocated.add(weight);
  if (live_.bytes > peak_bytes_) begin_peak(event.time_ns);
}

Uses SampleCounter::finish(const std::string& path) {
  if (slice_ && !slice_->finish(path)) begin_slice(unknown);
  uses_.end_time_ns = last_time_ns_;
  uses_.interval = live_.interval;
  for (KeyId key = 0; key < index_.size(); ++key) {
    if (index_[key] == 0) continue;
    const Counter& counter = counters_[index_[key] - 1];
    if (counter.allocated.samples == 0 && slice_ && counter.at_begin.samples == 0) continue;
    SampledUse sums{counter.allocated, counter.live.at_peak(peaks_), counter.live.now(), counter.at_begin};
    for (Estimate* const each : {&sums.allocated, &sums.peak, &sums.live}) each->interval = live_.interval;
    sums.peak.is_at_peak = true;
    if (slice_) sums.at_begin.interval = live_.interval;
    Uses::Entry& entry = uses_.entries.emplace_back();
    entry.key = key;
    entry.use = use_of(sums);
    entry.name = keys_.name(key);
  }
  return std::move(uses_);
}

}  // namespace cmt::analysis
