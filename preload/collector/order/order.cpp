// Merges the rings, with a fast path for nearly all events.
#include "preload/collector/order/order.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace cmt::collector {
namespace {

/// One or two seconds of rdtsc / 16. A realloc that has not returned by then was left by longjmp.
constexpr std::uint64_t realloc_stamps_max = std::uint64_t{1} << 28;

bool makes_block(const RingEvents& ring) {
  const Kind kind = static_cast<Kind>(ring.kind());
  return is_known(kind) && (traits(kind).allocates || kind == Kind::pool_malloc);
}

bool is_later(const RingEvents* a, const RingEvents* b) { return a->stamp() > b->stamp(); }

/// How apply_plain() treats records of a kind.
struct PlainKind {
  enum : std::uint8_t { other, allocates, releases } effect = other;
  std::uint32_t size_mask = 0;  // 0: the kind has no size
};

/// Indexed by slot_kind(), so that records that are no events have an entry too.
constexpr std::array<PlainKind, slot_kind_mask + 1> plain_kinds = [] {
  std::array<PlainKind, slot_kind_mask + 1> all{};
  for (std::size_t i = 0; i < kind_limit; ++i) {
    const KindTraits& kind = all_traits[i];
    if (kind.allocates != kind.releases) all[i].effect = kind.allocates ? PlainKind::allocates : PlainKind::releases;
    if (kind.sizes) all[i].size_mask = ~std::uint32_t{0};
  }
  return all;
}();

}  // namespace

RingEvents& EventOrder::events_of(std::uint32_t ring) {
  std::deque<RingEvents>& rings = ring < rings_max ? rings_ : outside_rings_;
  const std::uint32_t index = ring < rings_max ? ring : ring - rings_max;
  while (index >= rings.size()) rings.emplace_back(stacks_);
  return rings[index];
}

void EventOrder::append_records(std::uint32_t number, Packed records) {
  RingEvents& ring = events_of(number);
  ring.append(std::move(records));
  if (!ring.is_queued && ring.blocked_on == 0 && ring.has_front()) enqueue(ring);
}

void EventOrder::restore_event(const Event& event) {
  touched_.restore(event);
  next_pool_block_ = std::max(next_pool_block_, event.pool_block + 1);
  BookedEvent& booked = batch_.next_other();
  booked = {event, {}};
  if (const auto place = event.old_tag != 0 ? live_.find(event.old_address) : std::nullopt) {
    booked.old = live_.block(*place);
    if (event.ends_block()) live_.erase(*place);
  }
  if (event.old_tag != 0 && event.old_tag < live_.first_tag())
    next_reserved_ = std::max(next_reserved_, event.old_tag + 1);
  if (event.tag != 0) {
    live_.set(live_.find_or_reserve(event.address), {event.tag, event.address, event.bytes()});
    next_tag_ = event.tag + 1;
  }
  commit_other();
}

void EventOrder::flush_batch() {
  if (batch_.empty()) return;
  batch_limit_ = std::min(sink_(batch_), EventBatch::capacity);
  batch_.clear();
}

void EventOrder::enqueue(RingEvents& ring) {
  ring.is_queued = true;
  queue_.push_back(&ring);
  std::push_heap(queue_.begin(), queue_.end(), is_later);
}

RingEvents* EventOrder::dequeue() {
  assert(!queue_.empty());
  std::pop_heap(queue_.begin(), queue_.end(), is_later);
  RingEvents* ring = queue_.back();
  queue_.pop_back();
  ring->is_queued = false;
  return ring;
}

void EventOrder::merge_until(std::uint64_t cut) {
  do merge_queue(cut);
  while (unblock_oldest(cut));
  flush_batch();
}

/// Whether a blocked ring's front waits for the return of a realloc, rather than for an address.
bool EventOrder::awaits_realloc(const RingEvents& ring) {
  if (ring.kind() < kind_limit && is_of_pool(static_cast<Kind>(ring.kind()))) return false;
  const auto place = live_.find(ring.blocked_on);
  return place && place->is_in_realloc();
}

/// Whether the realloc for which a blocked ring's front waits cannot return at once. Its ring has a signal handler's
/// event before the return, or the return is blocked itself.
bool EventOrder::is_return_delayed(const RingEvents& ring) const {
  return std::any_of(rings_.begin(), rings_.end(), [&](const RingEvents& other) {
    return !other.open_reallocs.empty() && other.open_reallocs.back().address == ring.blocked_on && other.has_front() &&
           (other.blocked_on != 0 || !other.has_old_block());
  });
}

/// The stamp up to which events may be merged while others are blocked.
///
/// - All later events may depend on events after a front that waits for the return of a realloc. So no event passes
///   such a front. The return does not depend on events after the front in turn. A realloc gets its new memory before
///   it gives up the old one, so all that its return needs is earlier than the front.
///
/// - Other fronts wait for events whose stamps may be a little later than their own.
std::uint64_t EventOrder::barrier(std::uint64_t cut) {
  for (const RingEvents* ring : blocked_) {
    if (ring->stamp() >= cut) continue;  // most of many blocked rings: saves the search for what they wait for
    cut = std::min(cut, ring->stamp() + patience_with_others(*ring));
  }
  return cut;
}

/// How far events of other rings may pass a ring whose front is blocked. If there are blocks from before the recording,
/// most ends of unknown blocks are ends of these. Such an end waits in vain, and other rings may need the events after
/// it.
std::uint64_t EventOrder::patience_with_others(const RingEvents& ring) {
  const bool passes_none = awaits_realloc(ring) ? !is_return_delayed(ring) : earlier_are_many_ && !makes_block(ring);
  return passes_none ? 0 : 2 * stamp_slack;
}

void EventOrder::merge_queue(std::uint64_t cut) {
  std::uint64_t end = barrier(cut);
  while (!queue_.empty() && queue_.front()->stamp() <= end) {
    RingEvents* ring = dequeue();
    const std::uint64_t bound = queue_.empty() ? end : std::min(end, queue_.front()->stamp());
    merge_run(*ring, bound);
    if (ring->has_front() && ring->blocked_on == 0) enqueue(*ring);
    end = barrier(cut);
  }
}

/// The counterpart of apply_plain() for the begin or the return of a realloc that was given a block and returned one.
inline bool EventOrder::apply_plain_realloc(RingEvents& ring) {
  const Slot& record = ring.last_record();
  const std::uint64_t address = record.head >> slot_address_shift;
  if (ring.kind() == record_realloc_begin) {
    const auto place = live_.find(address);
    if (!place || place->is_in_realloc() || ring.has_extension()) return false;
    if (touched_.is_large(live_.block(*place).size)) return false;
    begin_realloc(ring, *place);
    return true;
  }
  const bool is_plain = ring.kind() == static_cast<std::uint32_t>(Kind::realloc) && ring.has_old_block() &&
                        address != 0 && !ring.has_extension();
  if (!is_plain || ring.open_reallocs.empty()) return false;
  const std::uint64_t old = ring.open_reallocs.back().address;
  const auto place = live_.find(old);
  if (!place || place->tag() == 0 || (address != old && live_.find(address))) return false;
  if (overlapped_realloc(address, record.body >> 32, old) != 0) return false;
  if (touched_.is_large(record.body >> 32) || touched_.is_large(live_.block(*place).size)) return false;
  ring.open_reallocs.pop_back();
  end_realloc_of(old);
  BookedEvent& booked = batch_.next_other();
  booked = {.event = {.kind = Kind::realloc,
                      .thread = ring.thread,
                      .size = record.body >> 32,
                      .tag = next_tag_++,
                      .old_tag = place->tag(),
                      .address = address,
                      .old_address = old,
                      .time_ns = ring.stamp(),
                      .stack = ring.stack()},
            .old = live_.block(*place)};
  if (address != old) live_.erase(*place);
  live_.set(live_.find_or_reserve(address), {booked.event.tag, address, booked.event.size});
  commit_other();
  wake(old);
  if (address != old) wake(address);
  return true;
}

/// Applies events of one record that make or end one block, with stamps up to `bound`. Stops at any other event, and at
/// one that the live blocks contradict. Returns how many were applied; `stamp` is then that of the last one. Requires
/// that no ring is blocked.
std::size_t EventOrder::apply_plain(std::span<const Slot> records, const StackId* stacks, std::uint64_t stamp_high,
                                    std::uint64_t& stamp, std::uint64_t bound, std::uint32_t thread) {
  assert(blocked_.empty() && batch_.size() <= batch_limit_);
  const std::size_t count = std::min(records.size(), batch_limit_ - batch_.size());
  const bool are_blocks_in_realloc = !in_realloc_.empty();
  const std::uint64_t size_max = plain_size_max_;
  const std::span<BlockEvent> events = batch_.room();
  std::uint64_t last = stamp;
  Tag next_tag = next_tag_;
  std::size_t i = 0;
  LiveTable::Run blocks(live_, count);
  for (; i < count; ++i) {
    const Slot& record = records[i];
    const std::uint32_t kind = slot_kind(record.head);
    const PlainKind plain = plain_kinds[kind];
    const std::uint64_t address = record.head >> slot_address_shift;
    const std::uint64_t now = RingEvents::stamp_of(record, stamp_high, last);
    if (plain.effect == PlainKind::other || address == 0 || now > bound) break;
    blocks.prefetch((&record)[RingEvents::ahead].head >> slot_address_shift);
    const std::uint32_t size = static_cast<std::uint32_t>(record.body >> 32) & plain.size_mask;
    BlockEvent& event = events[i];
    event.makes_block = plain.effect == PlainKind::allocates;
    if (plain.effect == PlainKind::allocates) {
      if (size >= size_max || (are_blocks_in_realloc && overlapped_realloc(address, size) != 0)) break;
      if (!blocks.insert(address, next_tag, size)) break;
      event.tag = next_tag++;
      event.block_size = size;
    } else if (!blocks.take(address, event.tag, event.block_size, size_max)) {
      break;
    }
    event.address = address;
    event.time_ns = last = now;
    event.size = size;
    event.thread = thread;
    event.kind = static_cast<Kind>(kind);
    event.alignment_log = static_cast<std::uint8_t>(slot_alignment(record.head));
  }
  stamp = last;
  next_tag_ = next_tag;
  if (stacks != nullptr) std::copy_n(stacks, i, batch_.stack_room().begin());
  batch_.append(i);
  return i;
}

/// The same for events of pools.
std::size_t EventOrder::apply_plain_pools(std::span<const Slot> records, const StackId* stacks,
                                          std::uint64_t stamp_high, std::uint64_t& stamp, std::uint64_t bound,
                                          std::uint32_t thread) {
  assert(blocked_.empty());
  std::size_t i = 0;
  for (; i < records.size() && batch_.size() < batch_limit_; ++i) {
    const Slot& record = records[i];
    const std::uint64_t now = RingEvents::stamp_of(record, stamp_high, stamp);
    const Kind kind = static_cast<Kind>(slot_kind(record.head));
    if (!is_of_pool(kind) || now > bound) break;
    const std::uint64_t ahead = (&record)[RingEvents::ahead].head;
    if (const LiveTable* table = pools_[slot_alignment(ahead)].get()) table->prefetch(ahead >> slot_address_shift);
    const Event event{.kind = kind,
                      .thread = thread,
                      .size = record.body >> 32,
                      .address = record.head >> slot_address_shift,
                      .time_ns = now,
                      .stack = stacks != nullptr ? stacks[i] : 0};
    if (!append_pool_event(slot_alignment(record.head), event)) break;
    stamp = now;
  }
  return i;
}

/// Merges the events of one ring that come before those of all others: up to `bound`, or until one is blocked.
void EventOrder::merge_run(RingEvents& ring, std::uint64_t bound) {
  was_woken_ = false;
  while (!was_woken_ && ring.has_front() && ring.stamp() <= bound) {
    if (blocked_.empty()) {
      ring.pop_while(bound, [&](auto records, const StackId* stacks, std::uint64_t stamp_high, std::uint64_t& stamp) {
        std::size_t applied = apply_plain(records, stacks, stamp_high, stamp, bound, ring.thread);
        if (applied == 0) applied = apply_plain_pools(records, stacks, stamp_high, stamp, bound, ring.thread);
        if (batch_.size() >= batch_limit_) flush_batch();
        return applied;
      });
      if (!ring.has_front() || ring.stamp() > bound) return;
    }
    if (!apply_plain_realloc(ring) && !apply(ring, false)) return;
    ring.pop();
  }
}

/// Applies the oldest blocked event without the event for which it waits, if that one can no longer come: everything up
/// to the barrier has been merged. Returns whether an event was applied.
bool EventOrder::unblock_oldest(std::uint64_t cut) {
  if (blocked_.empty()) return false;
  // The return of a realloc may have been read meanwhile, with a stamp beyond the barrier.
  std::vector<std::uint64_t> awaited;
  for (const RingEvents* ring : blocked_) {
    if (awaits_realloc(*ring)) awaited.push_back(ring->blocked_on);
  }
  was_woken_ = false;
  for (const std::uint64_t address : awaited) {
    if (merge_return_of_realloc(address)) return true;
  }
  if (was_woken_) return true;
  const auto oldest = std::max_element(blocked_.begin(), blocked_.end(), is_later);
  RingEvents& ring = **oldest;
  const std::uint64_t patience = awaits_realloc(ring) ? realloc_stamps_max : 2 * stamp_slack;
  if (cut != forever && ring.stamp() + patience > cut) return false;
  ring.blocked_on = 0;
  blocked_.erase(oldest);
  if (apply(ring, true)) ring.pop();
  if (ring.has_front() && ring.blocked_on == 0) enqueue(ring);
  return true;
}

/// Merges the return of the open realloc of the block at an address, whatever its stamp. The caller has an event that
/// proves that the realloc has had its effect: an event of that address, or an allocation of some of the block's bytes.
/// Returns false if the return has not been read or is itself blocked.
bool EventOrder::merge_return_of_realloc(std::uint64_t old_address) {
  constexpr int depth_max = 8;  // in damaged rings, returns may wait for each other
  assert(returns_ahead_ >= 0 && returns_ahead_ <= depth_max);
  if (returns_ahead_ == depth_max) return false;
  for (RingEvents& ring : rings_) {
    if (ring.open_reallocs.empty() || ring.open_reallocs.back().address != old_address) continue;
    if (!ring.has_front() || !ring.has_old_block() || ring.blocked_on != 0) return false;
    std::erase(queue_, &ring);
    std::make_heap(queue_.begin(), queue_.end(), is_later);
    ring.is_queued = false;
    ++returns_ahead_;
    const bool is_applied = apply(ring, false);
    --returns_ahead_;
    if (!is_applied) return false;
    ring.pop();
    if (ring.has_front()) enqueue(ring);
    was_woken_ = true;
    return true;
  }
  return false;
}

/// Blocks a ring until wake(address). Returns false, for the caller to return. In damaged rings returns of reallocs may
/// wait for each other, and then the ring may be blocked already.
bool EventOrder::block_on(RingEvents& ring, std::uint64_t address) {
  assert(address != 0);
  const auto is_rival = [&](const RingEvents* other) {
    return other->blocked_on == address && makes_block(*other) == makes_block(ring);
  };
  if (std::any_of(blocked_.begin(), blocked_.end(), is_rival)) repairs_.add(Repair::order_race);
  if (ring.blocked_on == 0) blocked_.push_back(&ring);
  ring.blocked_on = address;
  return false;
}

void EventOrder::wake_blocked(std::uint64_t address) {
  for (std::size_t i = 0; i < blocked_.size();) {
    RingEvents* ring = blocked_[i];
    if (ring->blocked_on != address) {
      ++i;
      continue;
    }
    blocked_.erase(blocked_.begin() + static_cast<std::ptrdiff_t>(i));
    ring->blocked_on = 0;
    enqueue(*ring);
    was_woken_ = true;
    ++inversions_;
  }
}

}  // namespace cmt::collector
