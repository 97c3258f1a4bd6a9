// Follows the events of a sampled trace, as sample_counter.h describes.
#include "analysis/sampling/sample_counter.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <utility>

#include "cmt/error.h"

namespace cmt::analysis {

std::uint64_t sampling_interval(const Header& header, const std::string& path) {
  const auto text = header.find("sampled");
  if (!text) return 0;
  std::uint64_t interval = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), interval);
  if (error != std::errc() || end != text->data() + text->size() || interval == 0)
    throw FormatError(path, "sampled=" + std::string(*text) + " is no sampling interval in bytes");
  return interval;
}

SampledUse& SampledUse::operator+=(const SampledUse& more) {
  allocated += more.allocated;
  peak += more.peak;
  live += more.live;
  return *this;
}

const Estimate& SampledUse::estimate(Metric metric) const {
  assert(is_estimated(metric));
  return metric == Metric::peak ? peak : metric == Metric::live ? live : allocated;
}

std::int64_t SampledUse::metric(Metric metric) const {
  const Estimate& sum = estimate(metric);
  return static_cast<std::int64_t>(std::min(metric == Metric::blocks ? sum.blocks : sum.bytes, 0x1p62));
}

SampleCounter::SampleCounter(By by, std::uint64_t interval, std::optional<trace::SliceRange> slice,
                             command::Complaints& complaints)
    : keys_(by), blocks_(heap::Clock::Unit::events, complaints) {
  assert(interval != 0);
  uses_.first_interval = uses_.interval = interval;
  if (!slice) return;
  slice_.emplace(*std::move(slice));
  place_ = trace::SliceProgress::Place::before;
}

SampleCounter::Counter& SampleCounter::counter_of(KeyId key) {
  if (key >= index_.size()) index_.resize(std::max<std::size_t>(key + std::size_t{1}, index_.size() * 2));
  std::uint32_t& index = index_[key];
  if (index == 0) {
    counters_.emplace_back();
    index = static_cast<std::uint32_t>(counters_.size());
  }
  return counters_[index - 1];
}

/// The recorder has ended the samples that are none at the larger interval. So the others count for more.
void SampleCounter::raise_interval(std::uint64_t interval) {
  if (interval <= uses_.interval) return;
  uses_.interval = interval;
  live_ = {};
  for (Counter& counter : counters_) counter.live.change(peaks_) = {};
  blocks_.for_each([this](const Block& block) {
    const Weight weight = weight_of(block.size, uses_.interval);
    counter_of(block.key).live.change(peaks_).add(weight);
    live_.add(weight);
  });
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
    if (before == Place::before && place_ != Place::before) begin_peak(event.time_ns);
    if (place_ == Place::after) return false;
  }
  ++read_;
  uses_.events += place_ == Place::inside;
  if (event.kind == Kind::sampling_interval) raise_interval(event.size);
  const KeyId key = keys_.key_of(event);
  blocks_.start_event(event);
  if (event.ends_block()) {
    if (const Block* const block = blocks_.end_block(event.old_tag)) {
      const Weight weight = weight_of(block->size, uses_.interval);
      live_.remove(weight);
      counter_of(block->key).live.change(peaks_).remove(weight);
    }
  }
  if (event.makes_block() && event.bytes() != 0) make_sample(event, key);
  return true;
}

void SampleCounter::make_sample(const Event& event, KeyId key) {
  if (!blocks_.begin_block(event, {.key = key})) return;
  const Weight weight = weight_of(event.bytes(), uses_.interval);
  Counter& counter = counter_of(key);
  counter.live.change(peaks_).add(weight);
  live_.add(weight);
  if (place_ != trace::SliceProgress::Place::inside) return;
  counter.allocated.add(weight);
  if (live_.bytes > peak_bytes_) begin_peak(event.time_ns);
}

SampledUses SampleCounter::finish(const std::string& path) {
  if (slice_ && !slice_->finish(path)) begin_peak(unknown);
  for (KeyId key = 0; key < index_.size(); ++key) {
    if (index_[key] == 0) continue;
    const Counter& counter = counters_[index_[key] - 1];
    const SampledUse use{counter.allocated, counter.live.at_peak(peaks_), counter.live.now()};
    if (use == SampledUse{}) continue;  // all its blocks have ended before the slice
    uses_.entries.push_back({key, use, keys_.name(key)});
    uses_.total += use;
  }
  return std::move(uses_);
}

}  // namespace cmt::analysis
