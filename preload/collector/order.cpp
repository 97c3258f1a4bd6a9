#include "preload/collector/order.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace cmt::collector {
namespace {

constexpr std::uint64_t forever = std::numeric_limits<std::uint64_t>::max();
/// A second, nearly: a realloc that has begun and does not return was left by longjmp.
constexpr std::uint64_t transit_max = std::uint64_t{1} << 28;

bool makes_block(const Stream& stream) {
  return stream.kind() < kind_limit && traits(static_cast<Kind>(stream.kind())).allocates;
}

bool is_later(const Stream* a, const Stream* b) { return a->stamp() > b->stamp(); }

/// What a record of a kind does, where that is one thing only.
struct Plain {
  enum : std::uint8_t { neither, allocates, releases } what = neither;
  std::uint32_t size_mask = 0;  // 0 where the kind has no size
};

constexpr std::array<Plain, slot_kind_mask + 1> plain_kinds = [] {
  std::array<Plain, slot_kind_mask + 1> all{};
  for (std::size_t i = 0; i < kind_limit; ++i) {
    const KindTraits& kind = all_traits[i];
    if (kind.allocates != kind.releases) all[i].what = kind.allocates ? Plain::allocates : Plain::releases;
    if (kind.sizes) all[i].size_mask = ~std::uint32_t{0};
  }
  return all;
}();

}  // namespace

void Order::append(std::uint32_t ring, Packed records) {
  while (ring >= streams_.size()) streams_.emplace_back();
  Stream& stream = streams_[ring];
  stream.append(std::move(records));
  if (!stream.is_queued && stream.blocked_on == 0 && stream.has_front()) queue(stream);
}

void Order::resume(std::uint32_t ring, const Saved& saved) {
  while (ring >= streams_.size()) streams_.emplace_back();
  streams_[ring].resume(saved);
}

void Order::know(const Event& event) {
  BookedEvent& booked = batch_[batched_];
  booked = {event, {}};
  if (LiveTable::Slot* slot = event.old_tag != 0 ? live_.find(event.old_address) : nullptr) {
    booked.old = booked_block(*slot);
    if (event.ends_block()) live_.erase(slot);
  }
  if (event.old_tag != 0 && event.old_tag < first_tag_) next_unseen_ = std::max(next_unseen_, event.old_tag + 1);
  if (event.tag != 0) {
    live_.set(live_.place(event.address), {event.tag, event.address, event.bytes()});
    next_tag_ = event.tag + 1;
  }
  commit(booked);
}

Saved Order::settled(std::uint32_t ring) const {
  if (ring >= streams_.size()) return {};
  const Stream& stream = streams_[ring];
  return {stream.settled(), stream.thread, stream.epoch()};
}

void Order::queue(Stream& stream) {
  stream.is_queued = true;
  queue_.push_back(&stream);
  std::push_heap(queue_.begin(), queue_.end(), is_later);
}

Stream* Order::dequeue() {
  std::pop_heap(queue_.begin(), queue_.end(), is_later);
  Stream* stream = queue_.back();
  queue_.pop_back();
  stream->is_queued = false;
  return stream;
}

void Order::merge(std::uint64_t cut) {
  do drain_queue(cut);
  while (force_oldest(cut));
  hand_over();
}

void Order::finish() { merge(forever); }

/// What a blocked thread waits for has a stamp at most a little later. Nobody may go further: what comes behind the
/// blocked event is missing to them.
std::uint64_t Order::barrier(std::uint64_t cut) const {
  for (const Stream* stream : blocked_) cut = std::min(cut, stream->stamp() + 2 * stamp_slack);
  return cut;
}

void Order::drain_queue(std::uint64_t cut) {
  std::uint64_t end = barrier(cut);
  while (!queue_.empty() && queue_.front()->stamp() <= end) {
    Stream* stream = dequeue();
    const std::uint64_t bound = queue_.empty() ? end : std::min(end, queue_.front()->stamp());
    take_run(*stream, bound);
    if (stream->has_front() && stream->blocked_on == 0) queue(*stream);
    end = barrier(cut);
  }
}

/// The begin or the end of a realloc that was given a block and returned one, likewise.
inline bool Order::take_plain_realloc(Stream& stream) {
  const Slot& record = stream.slot();
  const std::uint64_t address = record.head >> slot_address_shift;
  if (stream.kind() == record_realloc_begin) {
    LiveTable::Slot* slot = live_.find(address);
    if (slot == nullptr || slot->in_transit()) return false;
    slot->set_in_transit(true);
    stream.in_transit.push_back({address, stream.front_place()});
    return true;
  }
  const bool is_plain = stream.kind() == static_cast<std::uint32_t>(Kind::realloc) &&
                        (record.head & slot_has_old_block) != 0 && address != 0 && !stream.has_more();
  if (!is_plain || stream.in_transit.empty()) return false;
  const std::uint64_t old = stream.in_transit.back().address;
  LiveTable::Slot* slot = live_.find(old);
  if (slot == nullptr || slot->tag() == 0 || (address != old && live_.find(address) != nullptr)) return false;
  stream.in_transit.pop_back();
  BookedEvent& booked = batch_[batched_];
  booked = {.event = {.kind = Kind::realloc,
                      .thread = stream.thread,
                      .size = record.body >> 32,
                      .tag = next_tag_++,
                      .old_tag = slot->tag(),
                      .address = address,
                      .old_address = old,
                      .time_ns = stream.stamp()},
            .old = booked_block(*slot)};
  if (address != old) {
    live_.erase(slot);
    slot = &live_.place(address);
  }
  live_.set(*slot, {booked.event.tag, address, booked.event.size});
  commit(booked);
  wake(old);
  if (address != old) wake(address);
  return true;
}

/// Nearly all events: a call that was given a block or returned one, which the addresses do not contradict, and nobody
/// waits. False, and nothing changed, for others.
inline bool Order::take_plain(const Slot& record, std::uint64_t stamp, std::uint32_t thread) {
  const std::uint32_t kind = slot_kind(record.head);
  const Plain plain = plain_kinds[kind];
  const std::uint64_t address = record.head >> slot_address_shift;
  if (plain.what == Plain::neither || address == 0) return false;
  LiveTable::Slot& slot = live_.place(address);
  BookedEvent& booked = batch_[batched_];
  booked = {.event = {.kind = static_cast<Kind>(kind),
                      .thread = thread,
                      .size = record.body >> 32 & plain.size_mask,
                      .alignment = alignment_of(record),
                      .time_ns = stamp},
            .old = {}};
  if (plain.what == Plain::allocates) {
    if (!slot.is_free()) return false;
    booked.event.address = address;
    booked.event.tag = next_tag_++;
    live_.set(slot, {booked.event.tag, address, booked.event.size});
  } else {
    if (slot.is_free() || slot.in_transit() || slot.tag() == 0) return false;
    booked.event.old_address = address;
    booked.event.old_tag = slot.tag();
    booked.old = booked_block(slot);
    live_.erase(&slot);
  }
  commit(booked);
  return true;
}

/// As many events of one thread as come before those of all others.
void Order::take_run(Stream& stream, std::uint64_t bound) {
  woken_ = false;
  while (!woken_ && stream.has_front() && stream.stamp() <= bound) {
    if (blocked_.empty()) {
      stream.take_short(bound,
                        [&, thread = stream.thread](const Slot& record, std::uint64_t stamp, std::uint64_t ahead) {
                          live_.prefetch(ahead);
                          return take_plain(record, stamp, thread);
                        });
      if (!stream.has_front() || stream.stamp() > bound) return;
    }
    if (!take_plain_realloc(stream) && !take(stream, false)) return;
    stream.pop();
  }
}

/// Everything up to the cut has been merged but what waits: what has waited long enough goes on without.
bool Order::force_oldest(std::uint64_t cut) {
  if (blocked_.empty()) return false;
  const auto oldest = std::max_element(blocked_.begin(), blocked_.end(), is_later);
  Stream& stream = **oldest;
  const LiveTable::Slot* slot = live_.find(stream.blocked_on);
  // The return of a realloc may have come meanwhile, with a stamp beyond the barrier.
  if (slot != nullptr && slot->in_transit() && end_realloc(stream.blocked_on)) return true;
  const std::uint64_t patience = slot != nullptr && slot->in_transit() ? transit_max : 2 * stamp_slack;
  if (cut != forever && stream.stamp() + patience > cut) return false;
  stream.blocked_on = 0;
  blocked_.erase(oldest);
  if (take(stream, true)) stream.pop();
  if (stream.has_front() && stream.blocked_on == 0) queue(stream);
  return true;
}

/// A realloc that has begun has had its effect where somebody else has the old address: its end, if it is there, comes
/// first, whatever its stamp. True if it was.
bool Order::end_realloc(std::uint64_t address) {
  for (Stream& other : streams_) {
    if (other.in_transit.empty() || other.in_transit.back().address != address) continue;
    const bool is_end = other.has_front() && (other.slot().head & slot_has_old_block) != 0 && other.blocked_on == 0;
    if (!is_end) return false;
    std::erase(queue_, &other);
    std::make_heap(queue_.begin(), queue_.end(), is_later);
    other.is_queued = false;
    if (!take(other, false)) return false;
    other.pop();
    if (other.has_front()) queue(other);
    woken_ = true;
    return true;
  }
  return false;
}

/// The block at an address, after what is known to come first.
LiveTable::Slot* Order::find(std::uint64_t address) {
  LiveTable::Slot* slot = live_.find(address);
  if (slot == nullptr || !slot->in_transit() || !end_realloc(address)) return slot;
  return live_.find(address);
}

bool Order::wait_for(Stream& stream, std::uint64_t address) {
  const auto same = [&](const Stream* other) {
    return other->blocked_on == address && makes_block(*other) == makes_block(stream);
  };
  if (std::any_of(blocked_.begin(), blocked_.end(), same)) repairs_.add(Repair::order_race);
  stream.blocked_on = address;
  blocked_.push_back(&stream);
  return false;
}

void Order::wake_blocked(std::uint64_t address) {
  for (std::size_t i = 0; i < blocked_.size();) {
    Stream* stream = blocked_[i];
    if (stream->blocked_on != address) {
      ++i;
      continue;
    }
    blocked_.erase(blocked_.begin() + static_cast<std::ptrdiff_t>(i));
    stream->blocked_on = 0;
    queue(*stream);
    woken_ = true;
    ++inversions_;
  }
}

bool Order::take(Stream& stream, bool forced) {
  const Recorded event = stream.front();
  if (event.kind == record_owner) {
    stream.thread = static_cast<std::uint32_t>(event.size);
    return true;
  }
  if (event.kind == record_realloc_begin) return take_given(stream, event, forced);
  if (!is_known(static_cast<Kind>(event.kind))) return true;
  const KindTraits& kind = traits(static_cast<Kind>(event.kind));
  if (kind.allocates && kind.releases) return take_realloc(stream, event, forced);
  if (kind.allocates) return take_allocation(stream, event, forced);
  if (kind.releases) return take_release(stream, event, forced);
  commit(blank(stream, event));
  return true;
}

/// The next event of the batch, without its blocks.
BookedEvent& Order::blank(const Stream& stream, const Recorded& event) {
  BookedEvent& booked = batch_[batched_];
  booked = {.event = {.kind = static_cast<Kind>(event.kind),
                      .thread = stream.thread,
                      .alignment = event.alignment,
                      .time_ns = event.stamp},
            .old = {}};
  const KindTraits& kind = traits(booked.event.kind);
  if (kind.sizes) booked.event.size = event.size;
  if (kind.counts) booked.event.count = event.count;
  if (kind.labels) booked.event.label = stream.label();
  return booked;
}

void Order::hand_over() {
  if (batched_ == 0) return;
  batch_limit_ = std::min(sink_({batch_.data(), std::exchange(batched_, 0)}), batch_max);
}

void Order::add(const Event& event) {
  BookedEvent& booked = batch_[batched_];
  booked = {event, {}};
  commit(booked);
}

/// The block of an entry, or none where it is not of this trace.
format::LiveBlock Order::booked_block(const LiveTable::Slot& slot) const {
  return slot.tag() >= first_tag_ ? live_.block(slot) : format::LiveBlock{};
}

std::vector<format::LiveBlock> Order::list_live_blocks() const {
  std::vector<format::LiveBlock> blocks;
  blocks.reserve(live_.size());
  live_.for_each([&](const format::LiveBlock& block) {
    if (block.tag >= first_tag_) blocks.push_back(block);
  });
  format::sort_by_tag(blocks);
  return blocks;
}

/// An address that becomes a block's must not be another's. False: wait.
bool Order::make_room(Stream& stream, const Recorded& event, bool forced) {
  LiveTable::Slot* slot = find(event.address);
  if (slot == nullptr) return true;
  if (!forced) return wait_for(stream, event.address);
  const Tag tag = slot->tag();
  const format::LiveBlock old = booked_block(*slot);
  live_.erase(slot);
  if (old.tag == 0) return true;
  repairs_.add(Repair::double_allocation);
  BookedEvent& end = batch_[batched_];
  end = {{.kind = Kind::free, .thread = stream.thread, .old_tag = tag, .old_address = event.address}, old};
  end.event.time_ns = event.stamp;
  commit(end);
  return true;
}

bool Order::take_allocation(Stream& stream, const Recorded& event, bool forced) {
  LiveTable::Slot* slot = nullptr;
  if (event.address != 0) {
    slot = &live_.place(event.address);
    if (!slot->is_free()) {
      if (!make_room(stream, event, forced)) return false;
      slot = &live_.place(event.address);
    }
  }
  BookedEvent& booked = blank(stream, event);
  if (slot != nullptr) {
    booked.event.address = event.address;
    booked.event.tag = next_tag_++;
    booked.event.usable = event.usable;
    live_.set(*slot, {booked.event.tag, event.address, booked.event.bytes()});
  }
  commit(booked);
  if (event.address != 0) wake(event.address);
  return true;
}

Tag Order::unseen_tag() { return next_unseen_ < first_tag_ ? next_unseen_++ : 0; }

bool Order::take_release(Stream& stream, const Recorded& event, bool forced) {
  if (event.address == 0) {
    commit(blank(stream, event));
    return true;
  }
  LiveTable::Slot* slot = find(event.address);
  const bool is_known = slot != nullptr && !slot->in_transit();
  if (!is_known && !forced) return wait_for(stream, event.address);
  const Tag tag = slot != nullptr ? slot->tag() : unseen_tag();
  const format::LiveBlock old = slot != nullptr ? booked_block(*slot) : format::LiveBlock{};
  if (slot != nullptr) live_.erase(slot);
  if (tag == 0) {
    repairs_.add(Repair::unmatched_free);
    return true;
  }
  BookedEvent& booked = blank(stream, event);
  booked.event.old_tag = tag;
  booked.event.old_address = event.address;
  booked.old = old;
  commit(booked);
  wake(event.address);
  return true;
}

bool Order::take_given(Stream& stream, const Recorded& event, bool forced) {
  LiveTable::Slot* slot = find(event.address);
  const bool is_known = slot != nullptr && !slot->in_transit();
  if (!is_known && !forced) return wait_for(stream, event.address);
  if (slot == nullptr) {
    slot = &live_.place(event.address);
    live_.set(*slot, {unseen_tag(), event.address, 0});
  }
  slot->set_in_transit(true);
  stream.in_transit.push_back({event.address, stream.front_place()});
  return true;
}

bool Order::take_realloc(Stream& stream, const Recorded& event, bool forced) {
  const std::uint64_t old = event.given && !stream.in_transit.empty() ? stream.in_transit.back().address : 0;
  if (event.address != 0 && event.address != old && !make_room(stream, event, forced)) return false;
  BookedEvent& booked = blank(stream, event);
  if (old != 0) {
    stream.in_transit.pop_back();
    take_given_block(booked, old, event.address);
  }
  if (event.address != 0) {
    booked.event.address = event.address;
    booked.event.tag = next_tag_++;
    booked.event.usable = event.usable;
    live_.set(live_.place(event.address), {booked.event.tag, event.address, booked.event.bytes()});
  }
  commit(booked);
  if (old != 0) wake(old);
  if (event.address != 0 && event.address != old) wake(event.address);
  return true;
}

/// A realloc was given the block at `old` and returned `address`.
void Order::take_given_block(BookedEvent& booked, std::uint64_t old, std::uint64_t address) {
  LiveTable::Slot* slot = live_.find(old);
  if (slot != nullptr) {
    booked.event.old_tag = slot->tag();
    booked.old = booked_block(*slot);
    slot->set_in_transit(false);
    const bool ends = address != 0 || booked.event.bytes() == 0;
    if (ends && address != old) live_.erase(slot);
  }
  if (booked.event.old_tag != 0) {
    booked.event.old_address = old;
  } else {
    repairs_.add(Repair::unmatched_realloc);  // a block that no tag was left for
  }
}

}  // namespace cmt::collector
