#include "toolkit/allocations/overhead/summarise.h"

#include <algorithm>
#include <filesystem>

#include "libcmt/heap/address_index.h"
#include "toolkit/allocations/overhead/live_walks.h"
#include "toolkit/allocations/overhead/placed_blocks.h"

namespace cmt::overhead {

using heap::Neighbourhood;
using heap::PlacedBlock;

Summariser::Summariser(const std::string& name, int page_shift, bool has_usable, command::Complaints& complaints,
                       std::uint64_t touched_min)
    : complaints_(complaints), page_shift_(page_shift), untouched_(touched_min, page_shift) {
  summary_.name = std::filesystem::path(name).filename().string();
  summary_.page_size = std::uint64_t{1} << page_shift;
  if (has_usable) now_.slop_bytes = 0;
}

void Summariser::count_event(const Event& event) {
  ++now_.event;
  if (event.time_ns != unknown) now_.time_ns = event.time_ns;
  require_addresses(event, complaints_);
  if (tells_pages(event.kind)) untouched_.touch(event);
  if (event.ends_block()) end_block(event);
  if (event.makes_block()) begin_block(event);
  if (event.kind == Kind::sample && event.size != 0) add_resident(event.size);  // 0: it had ended
  now_.pages = held_.live();
  if (untouched_.is_recorded()) now_.untouched_pages = untouched_.count();
  now_.held_pages_max = held_.most();
  if (now_.live_bytes > summary_.peak.live_bytes) save_peak();
  if (plot_) plot_->curve.add(now_);
  if (now_.event == next_sample_) take_sample(now_.event % (samples_a_walk * interval_) == 0);
}

void Summariser::end_block(const Event& event) {
  if (const auto found = live_.erase(event.old_address)) {
    count_end(*found);
    return;
  }
  ++summary_.unknown_ends;
  if (first_tag_.is_made_here(event.old_tag)) {
    complaints_.add("block <" + std::to_string(event.old_tag) + "> is ended but not live");
  }
}

void Summariser::begin_block(const Event& event) {
  first_tag_.note(event.tag);
  now_.allocated_bytes += event.bytes();
  const std::uint64_t slop = event.usable == unknown || event.usable < event.bytes() ? 0 : event.usable - event.bytes();
  const PlacedBlock block{event.address, event.bytes(), now_.allocated_bytes, event.tag, slop, event.kind};
  count_begin(insert_block(live_, block, [&](const Neighbourhood& old) {
    count_end(old);
    complaints_.add("block <" + std::to_string(block.tag) + "> is made where <" + std::to_string(old.block.tag) +
                    "> is live");
  }));
}

void Summariser::count_begin(const Neighbourhood& found) {
  count_gap(found.prev, found.next, -1);
  count_gap(found.prev, found.block, 1);
  count_gap(found.block, found.next, 1);
  held_.gain(found.block.address >> page_shift_, found.block.last() >> page_shift_, own_pages(found, page_shift_));
  summary_.pages_peak = std::max(summary_.pages_peak, held_.live());
  untouched_.begin_block(found.block);
  if (plot_) plot_->map.begin_block(found.block);
  if (now_.slop_bytes) *now_.slop_bytes += found.block.slop;
  ++now_.live_blocks;
  now_.live_bytes += found.block.size;
}

void Summariser::count_end(const Neighbourhood& found) {
  count_gap(found.prev, found.block, -1);
  count_gap(found.block, found.next, -1);
  count_gap(found.prev, found.next, 1);
  held_.lose(own_pages(found, page_shift_));
  untouched_.end_block(found.block);
  if (plot_) plot_->map.end_block(found.block);
  if (now_.slop_bytes) *now_.slop_bytes -= found.block.slop;
  --now_.live_blocks;
  now_.live_bytes -= found.block.size;
}

namespace {

/// The bytes between two neighbours. Empty where there is only one, where they overlap, or where they lie in two areas.
std::optional<std::uint64_t> gap_within_area(const PlacedBlock& low, const PlacedBlock& high) {
  if (low.address == 0 || high.address == 0) return std::nullopt;
  const std::int64_t bytes = heap::gap(low, high);
  if (bytes < 0 || bytes >= static_cast<std::int64_t>(area_gap_min)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

/// Adds a gap `times` times: 1, or -1 to remove it. Sums wrap, so that both are the same arithmetic.
void Summariser::count_gap(const PlacedBlock& low, const PlacedBlock& high, std::int64_t times) {
  const auto bytes = gap_within_area(low, high);
  if (!bytes) return;
  const auto sign = static_cast<std::uint64_t>(times);
  Gaps& gaps = gaps_[SizeClasses::index(*bytes)].change(peaks_);
  gaps.count += sign;
  gaps.bytes += sign * *bytes;
  now_.small_gap_bytes += sign * *bytes * static_cast<std::uint64_t>(*bytes <= small_gap_max);
}

/// The kernel counts pages of 4 KiB; each may lie on a larger page of its own.
void Summariser::add_resident(std::uint64_t bytes) {
  now_.resident_bytes = bytes;
  held_.limit(bytes >> std::min(page_shift_, 12));
}

void Summariser::save_peak() {
  ++peaks_;
  summary_.peak = now_;
}

void Summariser::take_sample(bool walks) {
  next_sample_ = now_.event + interval_;
  summary_.samples.push_back({now_, {}});
  if (walks) summary_.samples.back().old = find_old();
  if (plot_) plot_->map.add_moment(now_);
  if (summary_.samples.size() == samples_max) drop_samples();
}

OldBlocks Summariser::find_old() {
  const PinnedPages found = find_pins(live_, page_shift_, now_.old_before());
  if (found.pins.size() > summary_.pins.pinned_pages) keep_pins(found.pins);
  keep_holders();
  return found.old;
}

/// Walks only where a twentieth more is unused than at the sample so far: while a heap grows each sample has a little
/// more.
void Summariser::keep_holders() {
  const std::uint64_t page_bytes = now_.pages << page_shift_;
  const std::uint64_t unused = page_bytes > now_.live_bytes ? page_bytes - now_.live_bytes : 0;
  if (summary_.holders.pages != 0 && unused <= unused_max_ + unused_max_ / 20) return;
  unused_max_ = unused;
  summary_.holders = find_holders(live_, page_shift_, now_.allocated_bytes);
  summary_.holders.event = now_.event;
  summary_.holders.pages = now_.pages;
  summary_.holders.live_bytes = now_.live_bytes;
  if (walk_at_holders_) walk_at_holders_(live_, now_);
}

void Summariser::keep_pins(const std::vector<PlacedBlock>& pins) {
  summary_.pins = Pins{now_.event, now_.pages, pins.size(), {}, {}};
  for (const PlacedBlock& block : pins) ++summary_.pins.pages_by_size[SizeClasses::index(block.size)];
  std::vector<PlacedBlock> oldest(std::min(pins.size(), pins_max));
  std::partial_sort_copy(pins.begin(), pins.end(), oldest.begin(), oldest.end(),
                         [](const PlacedBlock& a, const PlacedBlock& b) { return a.tag < b.tag; });
  for (const PlacedBlock& block : oldest) {
    summary_.pins.oldest.push_back({block, now_.allocated_bytes - block.born});
  }
}

void Summariser::drop_samples() {
  interval_ *= 2;
  next_sample_ = now_.event + interval_;
  std::vector<Sample> kept;
  for (const Sample& sample : summary_.samples) {
    if (sample.event % interval_ != 0) continue;
    kept.push_back(sample);
    if (sample.event % (samples_a_walk / 2 * interval_) != 0) kept.back().old.reset();
  }
  summary_.samples.swap(kept);
  if (plot_) plot_->map.drop_moments(interval_);
}

Summary Summariser::finish(bool truncated) {
  if (!summary_.samples.empty() && summary_.samples.back().event == now_.event) summary_.samples.pop_back();
  take_sample(true);
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

}  // namespace cmt::overhead
