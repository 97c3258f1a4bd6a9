// The second half of overhead's summary: counts the changes that PlaceFollower passes on.
#include "analysis/places/summarise.h"

#include <algorithm>
#include <cassert>
#include <filesystem>

#include "libcmt/heap/address_index.h"
namespace cmt::analysis {

Summariser::Summariser(const std::string& name, int page_shift, bool has_usable, command::Complaints& complaints,
                       std::uint64_t touched_min)
    : complaints_(complaints),
      page_shift_(page_shift),
      places_(page_shift, complaints),
      untouched_(touched_min, page_shift) {
  summary_.name = std::filesystem::path(name).filename().string();
  summary_.page_size = std::uint64_t{1} << page_shift;
  if (has_usable) now_.slop_bytes = 0;
}

void Summariser::count_event(const Event& event) {
  own_changes_.clear();
  places_.follow(event, own_changes_);
  begin_count(own_changes_);
  count(event);
}

void Summariser::count(const Event& event) {
  ++now_.event;
  if (event.time_ns != unknown) now_.time_ns = event.time_ns;
  if (names_pages(event.kind)) untouched_.touch(event);
  for (; change_ != changes_end_ && change_->event == now_.event; ++change_) apply(*change_);
  if (event.kind == Kind::sample && event.size != 0 && event.size != unknown) add_sample(event);  // 0: it had ended
  now_.pages = held_.live();
  if (untouched_.is_recorded()) {
    now_.untouched_pages = untouched_.count();
    now_.unknown_pages = untouched_.unknown();
  }
  now_.held_pages_max = held_.most();
  if (now_.live_bytes > summary_.peak.live_bytes) save_peak();
  if (plot_) plot_->curve.add(now_);
  if (now_.event == samples_.next) take_sample(samples_.walks_at(now_.event) ? walk_++ : nullptr);
}

void Summariser::apply(const PlaceChange& change) {
  if (change.sort == PlaceChange::Sort::unknown_end) {
    ++summary_.unknown_ends;
    return;
  }
  const heap::PlacedBlock block = change.block();
  const std::uint64_t times = change.sort == PlaceChange::Sort::made ? 1 : -1;  // sums wrap
  count_gaps(change, times);
  if (change.sort == PlaceChange::Sort::made) {
    now_.allocated_bytes += block.size;
    held_.gain(block.address >> page_shift_, block.last() >> page_shift_, change.own_pages);
    summary_.pages_peak = std::max(summary_.pages_peak, held_.live());
    untouched_.begin_block(block);
    if (plot_) plot_->map.begin_block(block);
  } else {
    held_.lose(change.own_pages);
    untouched_.end_block(block);
    if (plot_) plot_->map.end_block(block);
  }
  if (now_.slop_bytes) *now_.slop_bytes += times * block.slop;
  now_.live_blocks += times;
  now_.live_bytes += times * block.size;
}

/// A new block splits the gap between its neighbours in two; the end of a block joins two gaps.
void Summariser::count_gaps(const PlaceChange& change, std::uint64_t times) {
  const bool has_prev = change.prev_end != 0, has_next = change.next_address != 0;
  if (has_prev && has_next) count_gap(change.prev_end, change.next_address, 0 - times);
  if (has_prev) count_gap(change.prev_end, change.address, times);
  if (has_next) count_gap(change.address + change.size, change.next_address, times);
}

/// Adds the gap from the end of one block to the begin of the next `times` times: 1, or -1 to remove it. Blocks that
/// overlap or are in two areas have no gap between them.
void Summariser::count_gap(std::uint64_t low_end, std::uint64_t high, std::uint64_t times) {
  const std::uint64_t bytes = high - low_end;
  if (bytes >= area_gap_min) return;
  Gaps& gaps = gaps_[SizeClasses::index(bytes)].change(peaks_);
  gaps.count += times;
  gaps.bytes += times * bytes;
  now_.small_gap_bytes += times * bytes * static_cast<std::uint64_t>(bytes <= small_gap_max);
}

/// The kernel counts pages of 4 KiB; each may lie on a larger page of its own.
void Summariser::add_sample(const Event& sample) {
  now_.resident_bytes = sample.size;
  now_.resident_event = now_.event;
  now_.resident_time_ns = sample.time_ns;
  now_.resident_live_bytes = now_.live_bytes;
  held_.limit(sample.size >> std::min(page_shift_, 12));
}

void Summariser::save_peak() {
  ++peaks_;
  summary_.peak = now_;
}

/// `old`: the result of the walk, or null if there was none.
void Summariser::take_sample(const OldBlocks* old) {
  assert(summary_.samples.size() < SampleClock::samples_max);
  summary_.samples.push_back({now_, {}});
  if (old != nullptr) summary_.samples.back().old = *old;
  if (plot_) plot_->map.add_moment(now_);
  samples_.next = now_.event + samples_.interval;
  if (summary_.samples.size() == SampleClock::samples_max) drop_samples();
}

void Summariser::drop_samples() {
  samples_.interval *= 2;
  const std::uint64_t interval = samples_.interval;
  samples_.next = now_.event + interval;
  std::vector<Sample> kept;
  for (const Sample& sample : summary_.samples) {
    if (sample.event % interval != 0) continue;
    kept.push_back(sample);
    if (sample.event % (SampleClock::samples_a_walk / 2 * interval) != 0) kept.back().old.reset();
  }
  summary_.samples.swap(kept);
  if (plot_) plot_->map.drop_moments(interval);
}

Summary Summariser::finish(bool truncated) {
  assert(change_ == changes_end_);
  if (!summary_.samples.empty() && summary_.samples.back().event == now_.event) summary_.samples.pop_back();
  const OldBlocks old = places_.finish();
  take_sample(&old);
  summary_.pins = places_.take_pins();
  summary_.holders = places_.take_holders();
  summary_.heap_tops = places_.take_heap_tops();
  summary_.mmap_threshold = places_.take_threshold(summary_.heap_tops.unknown_because);
  if (plot_) {
    summary_.curve = std::move(plot_->curve).finish();
    summary_.address_map = std::move(plot_->map).finish();
  }
  for (std::size_t i = 0; i < SizeClasses::count; ++i) summary_.gaps[i] = gaps_[i].at_peak(peaks_);
  summary_.events = now_.event;
  summary_.defects = complaints_.count();
  summary_.truncated = truncated;
  return std::move(summary_);
}

}  // namespace cmt::analysis
