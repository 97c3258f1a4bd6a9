// Follows the blocks by address, and takes the walks over all live blocks at samples.
#include "analysis/places/places.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "analysis/places/live_walks.h"
#include "analysis/places/placed_blocks.h"

namespace cmt::analysis {

using heap::Neighbourhood;
using heap::PlacedBlock;
using Sort = PlaceChange::Sort;

void PlaceFollower::follow(const Event& event, PlaceChanges& out) {
  ++now_.event;
  if (event.time_ns != unknown) now_.time_ns = event.time_ns;
  require_addresses(event, complaints_);
  if (event.ends_block()) end_block(event, out);
  if (event.makes_block()) begin_block(event, out);
  if (event.kind == Kind::sample && event.size != 0 && event.size != unknown) heap_tops_.note_resident(event.size);
  if (event.kind == Kind::mallopt) threshold_.set(event);
  if (now_.event != samples_.next) return;
  if (samples_.walks_at(now_.event)) out.walks.push_back(find_old());
  samples_.advance(now_.event);
}

void PlaceFollower::end_block(const Event& event, PlaceChanges& out) {
  if (live_.erase(event.old_address, found_)) {
    if (found_.block.size >= ThresholdFollower::least_bytes) threshold_.end_block(event, found_.block, now_.event);
    change(found_, Sort::ended, out);
  } else if (!first_tag_.is_made_here(event.old_tag)) {
    out.changes.push_back({.event = now_.event, .sort = Sort::unknown_end});
    heap_tops_.end_early_block();
  } else {
    complaints_.add("block <" + std::to_string(event.old_tag) + "> is ended but not live");
  }
}

void PlaceFollower::begin_block(const Event& event, PlaceChanges& out) {
  first_tag_.note(event.tag);
  const std::uint64_t bytes = event.bytes();
  heap_tops_.begin_block(event.address, bytes);
  if (bytes >= ThresholdFollower::least_bytes) threshold_.begin_block(event, heap_tops_);
  now_.allocated_bytes += bytes;
  const std::uint64_t slop = event.usable == unknown || event.usable < bytes ? 0 : event.usable - bytes;
  PlacedBlock& block = found_.block;
  block.address = event.address;
  block.size = bytes;
  block.born = now_.allocated_bytes;
  block.tag = event.tag;
  block.slop = slop;
  block.kind = event.kind;
  insert_block(live_, found_, [&](const Neighbourhood& old) {
    change(old, Sort::ended, out);
    complaints_.add("block <" + std::to_string(event.tag) + "> is made where <" + std::to_string(old.block.tag) +
                    "> is live");
  });
  change(found_, Sort::made, out);
}

void PlaceFollower::change(const Neighbourhood& found, Sort sort, PlaceChanges& out) {
  const std::uint64_t pages = own_pages(found, page_shift_);
  out.changes.push_back({.event = now_.event,
                         .address = found.block.address,
                         .own_pages = pages,
                         .size = found.block.size,
                         .prev_end = found.prev.address == 0 ? 0 : found.prev.address + found.prev.size,
                         .tag = found.block.tag,
                         .next_address = found.next.address,
                         .slop = found.block.slop,
                         .sort = sort});
  const std::uint64_t times = sort == Sort::made ? 1 : -1;  // sums wrap
  now_.live_blocks += times;
  now_.live_bytes += times * found.block.size;
  now_.pages += times * pages;
}

OldBlocks PlaceFollower::find_old() {
  assert(now_.live_blocks == live_.size());
  const PinnedPages found = find_pins(live_, page_shift_, now_.old_before());
  if (found.pins.size() > pins_.pinned_pages) keep_pins(found.pins);
  keep_holders();
  heap_tops_.walk(live_, now_);
  keep_separable(found.old);
  return found.old;
}

void PlaceFollower::keep_separable(const OldBlocks& old) {
  if (!walk_at_separable_ || old.separable_pages <= separable_max_ + separable_max_ / 20) return;
  separable_max_ = old.separable_pages;
  walk_at_separable_(live_, now_);
}

/// Walks only if a twentieth more bytes are unused than at the last such sample: while a heap grows, each sample has a
/// little more.
void PlaceFollower::keep_holders() {
  const std::uint64_t page_bytes = now_.pages << page_shift_;
  const std::uint64_t unused = page_bytes > now_.live_bytes ? page_bytes - now_.live_bytes : 0;
  if (holders_.pages != 0 && unused <= unused_max_ + unused_max_ / 20) return;
  unused_max_ = unused;
  holders_ = find_holders(live_, page_shift_, now_.allocated_bytes);
  holders_.event = now_.event;
  holders_.pages = now_.pages;
  holders_.live_bytes = now_.live_bytes;
  if (walk_at_holders_) walk_at_holders_(live_, now_);
}

void PlaceFollower::keep_pins(const std::vector<PlacedBlock>& pins) {
  pins_ = Pins{now_.event, now_.pages, pins.size(), {}, {}};
  for (const PlacedBlock& block : pins) ++pins_.pages_by_size[SizeClasses::index(block.size)];
  std::vector<PlacedBlock> oldest(std::min(pins.size(), pins_max));
  std::partial_sort_copy(pins.begin(), pins.end(), oldest.begin(), oldest.end(),
                         [](const PlacedBlock& a, const PlacedBlock& b) { return a.tag < b.tag; });
  for (const PlacedBlock& block : oldest) pins_.oldest.push_back({block, now_.allocated_bytes - block.born});
}

}  // namespace cmt::analysis
