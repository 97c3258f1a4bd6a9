#include "preload/collector/order.h"

#include <algorithm>
#include <limits>

namespace cmt::collector {
namespace {

constexpr std::uint64_t forever = std::numeric_limits<std::uint64_t>::max();
/// A second, nearly: a realloc that has begun and does not return was left by longjmp.
constexpr std::uint64_t transit_max = std::uint64_t{1} << 28;

bool makes_block(const Stream& stream) {
  return stream.front().kind < kind_count && traits(static_cast<Kind>(stream.front().kind)).allocates;
}

bool is_later(const Stream* a, const Stream* b) { return a->front().stamp > b->front().stamp; }

}  // namespace

void Order::append(std::uint32_t ring, std::span<const Slot> records) {
  while (ring >= streams_.size()) streams_.emplace_back();
  Stream& stream = streams_[ring];
  stream.append(records);
  if (!stream.is_queued && stream.blocked_on == 0 && stream.has_front()) queue(stream);
}

void Order::resume(std::uint32_t ring, const Saved& saved) {
  while (ring >= streams_.size()) streams_.emplace_back();
  streams_[ring].resume(saved);
}

void Order::know(const Event& event) {
  if (event.ends_block()) {
    if (LiveTable::Slot* slot = live_.find(event.old_address)) live_.erase(slot);
  }
  if (event.old_tag != 0 && event.old_tag < first_tag_) next_unseen_ = std::max(next_unseen_, event.old_tag + 1);
  if (event.tag == 0) return;
  if (live_.find(event.address) == nullptr) live_.insert(event.address, event.tag);
  next_tag_ = event.tag + 1;
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
}

void Order::finish() { merge(forever); }

/// What a blocked thread waits for has a stamp at most a little later. Nobody may go further: what comes behind the
/// blocked event is missing to them.
std::uint64_t Order::barrier(std::uint64_t cut) const {
  for (const Stream* stream : blocked_) cut = std::min(cut, stream->front().stamp + 2 * stamp_slack);
  return cut;
}

void Order::drain_queue(std::uint64_t cut) {
  std::uint64_t end = barrier(cut);
  while (!queue_.empty() && queue_.front()->front().stamp <= end) {
    Stream* stream = dequeue();
    const std::uint64_t bound = queue_.empty() ? end : std::min(end, queue_.front()->front().stamp);
    take_run(*stream, bound);
    if (stream->has_front() && stream->blocked_on == 0) queue(*stream);
    end = barrier(cut);
  }
}

/// As many events of one thread as come before those of all others.
void Order::take_run(Stream& stream, std::uint64_t bound) {
  woken_ = false;
  while (!woken_ && stream.has_front() && stream.front().stamp <= bound) {
    live_.prefetch(stream.address_ahead());
    if (!take(stream, false)) return;
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
  if (slot != nullptr && slot->in_transit && end_realloc(stream.blocked_on)) return true;
  const std::uint64_t patience = slot != nullptr && slot->in_transit ? transit_max : 2 * stamp_slack;
  if (cut != forever && stream.front().stamp + patience > cut) return false;
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
    const bool is_end = other.has_front() && other.front().given && other.blocked_on == 0;
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
  if (slot == nullptr || !slot->in_transit || !end_realloc(address)) return slot;
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

void Order::wake(std::uint64_t address) {
  if (blocked_.empty()) return;
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
  const Recorded& event = stream.front();
  if (event.kind == record_owner) {
    stream.thread = static_cast<std::uint32_t>(event.size);
    return true;
  }
  if (event.kind == record_given) return take_given(stream, event, forced);
  if (event.kind >= kind_count) return true;
  const KindTraits& kind = traits(static_cast<Kind>(event.kind));
  if (kind.allocates && kind.releases) return take_realloc(stream, event, forced);
  if (kind.allocates) return take_allocation(stream, event, forced);
  if (kind.releases) return take_release(stream, event, forced);
  emit(stream, event, Event{});
  return true;
}

void Order::emit(const Stream& stream, const Recorded& event, const Event& shape) {
  Event full = shape;
  full.kind = static_cast<Kind>(event.kind);
  full.thread = stream.thread;
  const KindTraits& kind = traits(full.kind);
  if (kind.sizes) full.size = event.size;
  if (kind.counts) full.count = event.count;
  full.alignment = event.alignment;
  if (full.tag != 0) full.usable = event.usable;
  if (kind.labels) full.label = stream.label();
  sink_(full, event.stamp);
}

/// An address that becomes a block's must not be another's. False: wait.
bool Order::make_room(Stream& stream, const Recorded& event, bool forced) {
  LiveTable::Slot* slot = find(event.address);
  if (slot == nullptr) return true;
  if (!forced) return wait_for(stream, event.address);
  Event end{.kind = Kind::free, .thread = stream.thread, .old_tag = slot->tag, .old_address = event.address};
  live_.erase(slot);
  if (end.old_tag >= first_tag_) {
    repairs_.add(Repair::double_allocation);
    sink_(end, event.stamp);
  }
  return true;
}

bool Order::take_allocation(Stream& stream, const Recorded& event, bool forced) {
  Event shape{.address = event.address};
  if (event.address != 0) {
    if (!make_room(stream, event, forced)) return false;
    shape.tag = next_tag_++;
    live_.insert(event.address, shape.tag);
  }
  emit(stream, event, shape);
  if (event.address != 0) wake(event.address);
  return true;
}

Tag Order::unseen_tag() { return next_unseen_ < first_tag_ ? next_unseen_++ : 0; }

bool Order::take_release(Stream& stream, const Recorded& event, bool forced) {
  Event shape{.old_address = event.address};
  if (event.address != 0) {
    LiveTable::Slot* slot = find(event.address);
    const bool is_known = slot != nullptr && !slot->in_transit;
    if (!is_known && !forced) return wait_for(stream, event.address);
    shape.old_tag = slot != nullptr ? static_cast<Tag>(slot->tag) : unseen_tag();
    if (slot != nullptr) live_.erase(slot);
    if (shape.old_tag == 0) {
      repairs_.add(Repair::unmatched_free);
      return true;
    }
  }
  emit(stream, event, shape);
  if (event.address != 0) wake(event.address);
  return true;
}

bool Order::take_given(Stream& stream, const Recorded& event, bool forced) {
  LiveTable::Slot* slot = find(event.address);
  const bool is_known = slot != nullptr && !slot->in_transit;
  if (!is_known && !forced) return wait_for(stream, event.address);
  if (slot == nullptr) {
    live_.insert(event.address, unseen_tag());
    slot = live_.find(event.address);
  }
  slot->in_transit = 1;
  stream.in_transit.push_back({event.address, stream.front_place()});
  return true;
}

bool Order::take_realloc(Stream& stream, const Recorded& event, bool forced) {
  const std::uint64_t old = event.given && !stream.in_transit.empty() ? stream.in_transit.back().address : 0;
  if (event.address != 0 && event.address != old && !make_room(stream, event, forced)) return false;
  Event shape{.size = event.size, .count = event.count, .address = event.address, .old_address = old};
  shape.kind = static_cast<Kind>(event.kind);
  if (old != 0) {
    stream.in_transit.pop_back();
    LiveTable::Slot* slot = live_.find(old);
    shape.old_tag = slot != nullptr ? static_cast<Tag>(slot->tag) : 0;
    const bool ends = event.address != 0 || shape.bytes() == 0;
    if (slot != nullptr) slot->in_transit = 0;
    if (slot != nullptr && ends) live_.erase(slot);
  }
  if (event.address != 0) {
    shape.tag = next_tag_++;
    live_.insert(event.address, shape.tag);
  }
  if (old != 0 && shape.old_tag == 0) {
    // A block that no tag was left for.
    repairs_.add(Repair::unmatched_realloc);
    shape.old_address = 0;
  }
  emit(stream, event, shape);
  if (old != 0) wake(old);
  if (event.address != 0 && event.address != old) wake(event.address);
  return true;
}

}  // namespace cmt::collector
