// Applies any event to the live blocks: events of several records, contradictions, failed calls, and blocks whose
// allocation was never seen.
#include "preload/collector/order/order.h"

#include <cassert>
#include <cstring>

#include "libcmt/text/utf8.h"

namespace cmt::collector {
namespace {

/// The block that an event has made.
format::LiveBlock block_of(const Event& event) { return {event.tag, event.address, event.bytes()}; }

}  // namespace

bool EventOrder::apply(RingEvents& ring, bool forced) {
  const Event event = ring.front();
  if (ring.kind() == record_owner) {
    ring.thread = static_cast<std::uint32_t>(event.size);
    return true;
  }
  const bool is_pools = is_of_pool(event.kind);
  const bool needs_block = ring.kind() == record_realloc_begin || ring.kind() == record_pages || is_pools;
  if (needs_block && event.address == 0) {  // in a damaged ring
    repairs_.add(Repair::contradiction);
    return true;
  }
  if (is_pools) return apply_pool_event(ring, event, forced);
  if (ring.kind() == record_realloc_begin) return apply_realloc_begin(ring, event, forced);
  if (ring.kind() == record_pages) return apply_pages(ring, event, forced);
  if (!is_known(event.kind)) return true;
  const KindTraits& kind = traits(event.kind);
  if (kind.allocates && kind.releases) return apply_realloc_return(ring, event, forced);
  if (kind.allocates) return apply_allocation(ring, event, forced);
  if (kind.releases) return apply_release(ring, event, forced);
  begin_event(event);
  commit_other();
  return true;
}

/// The batch's next event, without its blocks.
BookedEvent& EventOrder::begin_event(const Event& event) {
  BookedEvent& booked = batch_.next_other();
  const KindTraits& kind = traits(event.kind);
  booked = {event, {}};
  booked.event.address = 0;
  booked.event.usable = unknown;
  if (!kind.sizes) booked.event.size = 0;
  if (!kind.counts) booked.event.count = 1;
  if (!kind.labels) booked.event.label = {};
  return booked;
}

/// The live blocks of a pool.
LiveTable& EventOrder::pool_table(std::size_t pool) {
  assert(pool < pools_.size());
  if (pools_[pool] == nullptr) pools_[pool] = std::make_unique<LiveTable>(1);
  return *pools_[pool];
}

/// Returns the name of a pool, or nothing, as for a number in a damaged ring. The program may write anything into the
/// memory that both share: so a name is read once, and made valid.
std::string_view EventOrder::name_of_pool(std::size_t pool) {
  std::string& name = names_of_pools_[pool];
  if (!name.empty()) return name;
  if (pool < pools_known) return name = pool_names[pool];
  if (control_ == nullptr) return {};
  const char* const given = control_->pools[pool];
  return name = text::to_utf8({given, strnlen(given, pool_name_bytes)});
}

/// A ring with a blocked event of a pool waits for this value instead of an address: pools have addresses of their own.
std::uint64_t place_in_pool(std::size_t pool, std::uint64_t address) {
  return static_cast<std::uint64_t>(pool + 1) << (64 - slot_address_shift) | address;
}

/// Appends an event of a pool, as front() returns it. Returns false, and does nothing, if the pool is not known or the
/// live blocks contradict the event.
bool EventOrder::append_pool_event(std::size_t pool, const Event& event) {
  const std::string_view name = name_of_pool(pool);
  if (event.address == 0 || name.empty()) return false;
  LiveTable& blocks = pool_table(pool);
  const bool makes = event.kind == Kind::pool_malloc;
  std::uint64_t number = next_pool_block_;
  if (const auto place = blocks.find(event.address)) {
    if (makes) return false;
    number = place->tag();
    blocks.erase(*place);
  } else {
    if (!makes) return false;
    blocks.set(blocks.find_or_reserve(event.address), {number, event.address, event.size});
    ++next_pool_block_;
  }
  batch_.next_other() = {{.kind = event.kind,
                          .thread = event.thread,
                          .size = makes ? event.size : 0,
                          .time_ns = event.time_ns,
                          .label = name,
                          .stack = event.stack,
                          .pool_block = number},
                         {}};
  batch_.append_next_other();
  return true;
}

/// Applies an event of a pool. It waits for other rings as an event of malloc does. In vain: the end of an unknown
/// block is dropped, and an allocation on a live block ends that block first.
bool EventOrder::apply_pool_event(RingEvents& ring, const Event& event, bool forced) {
  const std::size_t pool = slot_alignment(ring.last_record().head);
  if (name_of_pool(pool).empty()) {
    repairs_.add(Repair::contradiction);
    return true;
  }
  bool is_applied = append_pool_event(pool, event);
  // The program cannot always distinguish a block of malloc from one of pymalloc before it is freed.
  const bool is_mallocs = pool == pool_python && event.kind == Kind::pool_free && live_.find(event.address);
  if (!is_applied && is_mallocs) return true;
  if (!is_applied && !forced) return block_on(ring, place_in_pool(pool, event.address));
  if (!is_applied && event.kind == Kind::pool_free) {
    ++unseen_pool_blocks_;
    return true;
  }
  if (!is_applied) {
    Event end = event;
    end.kind = Kind::pool_free;
    end.stack = 0;
    repairs_.add(Repair::double_allocation);
    ++replaced_pool_blocks_;
    is_applied = append_pool_event(pool, end);
    if (batch_.size() >= batch_limit_) flush_batch();
    is_applied = is_applied && append_pool_event(pool, event);
  }
  assert(is_applied);
  if (batch_.size() >= batch_limit_) flush_batch();
  wake(place_in_pool(pool, event.address));
  return true;
}

/// Appends the events about the pages of a large block.
void EventOrder::append_page_events(TouchedBlocks::Events events, const format::LiveBlock& block, std::uint64_t stamp) {
  for (const Event& event : events) {
    BookedEvent& booked = batch_.next_other();
    booked = {event, block};
    booked.event.time_ns = stamp;
    commit_other();
  }
}

/// Applies a report of pages. A report from outside, or from a thread that does not own the block, is dropped if the
/// block is gone.
bool EventOrder::apply_pages(RingEvents& ring, const Event& event, bool forced) {
  if (ring.pages().has(block_discards)) return apply_discard(ring, event);
  const bool is_owners = ring.pages().since == 0;
  const auto place = is_owners ? find_block(event.address) : live_.find(event.address);
  if (!place && is_owners && !forced) return block_on(ring, event.address);
  if (!place) return true;
  const format::LiveBlock block = live_.block(*place);
  append_page_events(touched_.add_report(block, ring.thread, ring.pages()), block, event.time_ns);
  return true;
}

/// Applies a call that has given back pages, perhaps of several blocks.
bool EventOrder::apply_discard(RingEvents& ring, const Event& event) {
  for (const Event& discard : touched_.discard(event.address, ring.pages().bytes, ring.thread, event.time_ns)) {
    const auto place = live_.find(discard.old_address);
    if (!place) continue;
    BookedEvent& booked = batch_.next_other();
    booked = {discard, live_.block(*place)};
    booked.event.time_ns = event.time_ns;
    commit_other();
  }
  return true;
}

/// Finds the block at an address. If it is in an open realloc, tries to merge the realloc's return first.
std::optional<LiveTable::Place> EventOrder::find_block(std::uint64_t address) {
  const auto place = live_.find(address);
  if (!place || !place->is_in_realloc() || !merge_return_of_realloc(address)) return place;
  return live_.find(address);
}

/// Marks a block as given to a realloc of this ring.
void EventOrder::begin_realloc(RingEvents& ring, LiveTable::Place place) {
  place.set_in_realloc(true);
  format::LiveBlock block = live_.block(place);
  block.address = place.address();
  in_realloc_.push_back(block);
  ring.open_reallocs.push_back({block.address, ring.point_of_front()});
}

/// Makes sure that a new block does not overlap a block in an open realloc. Such a realloc has moved or shrunk its
/// block, so this merges the realloc's return, or waits for it. `own`: the block that the event itself was given.
bool EventOrder::await_overlapped(RingEvents& ring, const Event& event, std::uint64_t own, bool forced) {
  while (const std::uint64_t old = overlapped_realloc(event.address, event.bytes(), own)) {
    if (merge_return_of_realloc(old)) continue;
    if (!forced) return block_on(ring, old);
    end_realloc_of(old);
  }
  return true;
}

/// Makes sure that an address is free for a new block: waits for the end of the block that is there, or, if `forced`,
/// invents this end.
bool EventOrder::vacate_address(RingEvents& ring, const Event& event, bool forced) {
  const auto place = find_block(event.address);
  if (!place) return true;
  if (!forced) return block_on(ring, event.address);
  const format::LiveBlock old = live_.block(*place);
  if (place->is_in_realloc()) end_realloc_of(event.address);
  if (touched_.is_large(old.size))
    append_page_events(touched_.end_block(old, ring.thread, PagesReport{}), old, event.time_ns);
  live_.erase(*place);
  if (old.tag == 0) return true;
  repairs_.add(Repair::double_allocation);
  BookedEvent& end = batch_.next_other();
  end = {{.kind = Kind::free, .thread = ring.thread, .old_tag = old.tag, .old_address = event.address}, old};
  end.event.time_ns = event.time_ns;
  commit_other();
  return true;
}

bool EventOrder::apply_allocation(RingEvents& ring, const Event& event, bool forced) {
  if (event.address != 0) {
    if (!await_overlapped(ring, event, 0, forced)) return false;
    if (!vacate_address(ring, event, forced)) return false;
  }
  BookedEvent& booked = begin_event(event);
  if (event.address != 0) {
    assert(!live_.find(event.address));  // no address is live twice
    booked.event.address = event.address;
    booked.event.tag = next_tag_++;
    booked.event.usable = event.usable;
    live_.set(live_.find_or_reserve(event.address), {booked.event.tag, event.address, booked.event.bytes()});
  }
  const Event made = booked.event;
  commit_other();
  if (touched_.is_large(made.bytes()))
    append_page_events(touched_.add_block(made, event.time_ns, ring.pages()), block_of(made), event.time_ns);
  if (event.address != 0) wake(event.address);
  return true;
}

bool EventOrder::apply_release(RingEvents& ring, const Event& event, bool forced) {
  if (event.address == 0) {
    begin_event(event);
    commit_other();
    return true;
  }
  auto place = find_block(event.address);
  const bool is_known = place && !place->is_in_realloc();
  if (!is_known && !forced) return block_on(ring, event.address);
  const Tag tag = place ? place->tag() : next_reserved_tag();
  const format::LiveBlock old = place ? live_.block(*place) : format::LiveBlock{};
  if (place && place->is_in_realloc()) end_realloc_of(event.address);
  if (touched_.is_large(old.size))
    append_page_events(touched_.end_block(old, ring.thread, ring.pages()), old, event.time_ns);
  if (place) live_.erase(*place);
  if (tag == 0) {
    repairs_.add(Repair::unmatched_free);
    return true;
  }
  BookedEvent& booked = begin_event(event);
  booked.event.old_tag = tag;
  booked.event.old_address = event.address;
  booked.old = old;
  commit_other();
  wake(event.address);
  return true;
}

bool EventOrder::apply_realloc_begin(RingEvents& ring, const Event& event, bool forced) {
  auto place = find_block(event.address);
  const bool is_known = place && !place->is_in_realloc();
  if (!is_known && !forced) return block_on(ring, event.address);
  if (!place) {
    place = live_.find_or_reserve(event.address);
    live_.set(*place, {next_reserved_tag(), event.address, 0});
  }
  begin_realloc(ring, *place);
  const format::LiveBlock given = live_.block(*place);
  if (touched_.is_large(given.size))
    append_page_events(touched_.begin_realloc(given, ring.thread, ring.pages()), given, event.time_ns);
  return true;
}

bool EventOrder::apply_realloc_return(RingEvents& ring, const Event& event, bool forced) {
  const bool has_old = ring.has_old_block() && !ring.open_reallocs.empty();
  const std::uint64_t old = has_old ? ring.open_reallocs.back().address : 0;
  if (event.address != 0 && !await_overlapped(ring, event, old, forced)) return false;
  if (event.address != 0 && event.address != old && !vacate_address(ring, event, forced)) return false;
  const auto given = old != 0 ? live_.find(old) : std::nullopt;
  const format::LiveBlock old_block = given ? live_.block(*given) : format::LiveBlock{};
  if (event.address != 0 && touched_.is_large(old_block.size))
    append_page_events(touched_.replace_block(old_block, ring.thread), old_block, event.time_ns);
  BookedEvent& booked = begin_event(event);
  if (old != 0) {
    ring.open_reallocs.pop_back();
    end_realloc_of(old);
    end_old_block(booked, old, event.address);
  }
  if (event.address != 0) {
    assert(event.address == old || !live_.find(event.address));  // no address is live twice
    booked.event.address = event.address;
    booked.event.tag = next_tag_++;
    booked.event.usable = event.usable;
    live_.set(live_.find_or_reserve(event.address), {booked.event.tag, event.address, booked.event.bytes()});
  }
  const Event made = booked.event;
  commit_other();
  if (touched_.is_large(made.bytes()) || touched_.is_large(old_block.size))
    append_page_events(touched_.resize_block(old_block, made, event.time_ns, ring.pages()), block_of(made),
                       event.time_ns);
  if (old != 0) wake(old);
  if (event.address != 0 && event.address != old) wake(event.address);
  return true;
}

/// Books the old block of a realloc that was given the block at `old_address` and returned `address`. The block ends
/// unless the call failed.
void EventOrder::end_old_block(BookedEvent& booked, std::uint64_t old_address, std::uint64_t address) {
  if (auto place = live_.find(old_address)) {
    booked.event.old_tag = place->tag();
    booked.old = live_.block(*place);
    place->set_in_realloc(false);
    const bool has_ended = address != 0 || booked.event.bytes() == 0;
    if (has_ended && address != old_address) live_.erase(*place);
  }
  if (booked.event.old_tag != 0) {
    booked.event.old_address = old_address;
  } else {
    repairs_.add(Repair::unmatched_realloc);  // the reserve of tags was used up
  }
}

}  // namespace cmt::collector
