// Counts the fates of blocks by size. The sizes at the peak are saved when they next change, not at each peak.
#include "lifetimes/summarise.h"

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <utility>

#include "toolkit/command/open_trace.h"

namespace cmt::lifetimes {

Summariser::Summariser(const std::string& name, heap::Clock::Unit clock, command::Complaints& complaints,
                       std::uint64_t touched_min)
    : complaints_(complaints), summary_(clock), fates_(clock, touched_min, complaints) {
  input_.name = std::filesystem::path(name).filename().string();
  if (touched_min == 0) return;
  input_.touched_min = touched_min;
  for (std::size_t i = SizeClasses::index(touched_min); i < SizeClasses::count; ++i)
    summary_.sizes[i].untouched_bytes = 0;
}

void Summariser::count_event(const Event& event) {
  ++input_.events;
  ++summary_.by_kind[static_cast<std::size_t>(event.kind)];
  if (event.failed()) ++summary_.failed;
  if (analysis::begins_pause(event) && live_total_.blocks != 0) input_.pauses = input_.pauses.value_or(0) + 1;
  const analysis::EndedBlock<Block> ended = fates_.follow(event);
  const std::uint32_t reallocations = event.ends_block() ? end_block(event, ended) : 0;
  if (event.makes_block()) begin_block(event, reallocations);
}

/// Counts the untouched bytes of a block that ends, or that is live at the end. A block that was made up to the last
/// peak was live at it.
void Summariser::count_untouched(const Block& block, bool is_known, std::uint64_t bytes) {
  SizeSummary& size = summary_.sizes[SizeClasses::index(block.size)];
  if (!is_known && block.size >= input_.touched_min)
    size.untouched_unknown_bytes = size.untouched_unknown_bytes.value_or(0) + block.size;
  if (bytes == 0) return;
  size.untouched_bytes += bytes;
  if (block.tag <= peak_tag_) untouched_of_peak_ += bytes;
}

/// Returns the number of reallocations in the chain of the event's new block; 0 if the event makes none.
std::uint32_t Summariser::end_block(const Event& event, const analysis::EndedBlock<Block>& ended) {
  if (!ended) {
    summary_.unknown_ends += !fates_.is_made_here(event.old_tag);
    return event.makes_block() ? 1 : 0;
  }
  const Block& block = *ended.block;
  const analysis::Fate& fate = ended.fate;
  const std::size_t size_class = SizeClasses::index(block.size);
  SizeSummary& size = summary_.sizes[size_class];
  ++size.ended;
  assert(size.ended <= size.allocated.blocks);
  size.short_lived += fate.is_short_lived;
  size.other_thread += fate.is_of_other_thread;
  size.temporary += fate.is_temporary;
  size.lifetime_max = std::max(size.lifetime_max, fate.lifetime);
  ++size.lifetimes[AgeClasses::index(fate.lifetime)];
  live_by_size_[size_class].change(peaks_).remove_block(block.size);
  live_total_.remove_block(block.size);
  count_untouched(block, fate.knows_touches, fate.untouched_bytes);
  if (event.makes_block()) {
    analysis::add_move(event, block.size, summary_.moved, summary_.moved_bytes);
    return block.reallocations + 1;
  }
  count_chain(block.reallocations);
  return 0;
}

void Summariser::begin_block(const Event& event, std::uint32_t reallocations) {
  if (!fates_.begin_block(event, {.reallocations = reallocations})) return;
  const std::uint64_t size = event.bytes();
  const std::size_t size_class = SizeClasses::index(size);
  summary_.sizes[size_class].allocated.add_block(size);
  live_by_size_[size_class].change(peaks_).add_block(size);
  live_total_.add_block(size);
  if (live_total_.bytes > input_.peak.live.bytes) save_peak(event);
}

void Summariser::save_peak(const Event& event) {
  ++peaks_;
  peak_tag_ = event.tag;
  untouched_of_peak_ = 0;
  input_.peak.live = live_total_;
  input_.peak.event = input_.events;
  input_.peak.time_ns = event.time_ns;
}

void Summariser::count_chain(std::uint32_t reallocations) {
  if (reallocations == 0) return;
  ++summary_.chains[AgeClasses::index(reallocations)];
  summary_.chain_max = std::max<std::uint64_t>(summary_.chain_max, reallocations);
}

Summary Summariser::finish(bool truncated) {
  fates_.for_each_live([&](const Block& block) {
    summary_.sizes[SizeClasses::index(block.size)].leaked.add_block(block.size);
    count_untouched(block, fates_.knows_touches_of(block), fates_.untouched_of(block));
    count_chain(block.reallocations);
  });
  for (std::size_t i = 0; i < SizeClasses::count; ++i) input_.peak.sizes[i] = live_by_size_[i].at_peak(peaks_);
  if (input_.touched_min != unknown) input_.peak.untouched_bytes = untouched_of_peak_;
  input_.truncated = truncated;
  input_.defects = complaints_.count();
  summary_.inputs.push_back(std::move(input_));
  return std::move(summary_);
}

Summary summary_of(const trace::Options& options) {
  trace::Trace trace(options, true);
  Summariser summariser(options.path, options.clock, trace.complaints(), trace.header().touched_min());
  trace.for_each([&](const Event& event) { summariser.count_event(event); });
  if (trace.lacks_last_touches()) summariser.note_unknown_end();
  Summary summary = summariser.finish(trace.truncated());
  if (const std::uint64_t lost = trace.lost_events(); lost != 0) summary.inputs.back().lost = lost;
  summary.inputs.back().memory = command::memory_text(trace.header());
  summary.inputs.back().pools_not_counted = trace.pools().not_counted();
  summary.inputs.back().name = options.name_with_pool(summary.inputs.back().name);
  trace.complaints().say_count();
  return summary;
}

}  // namespace cmt::lifetimes
