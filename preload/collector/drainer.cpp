#include "preload/collector/drainer.h"

#include <x86intrin.h>

#include <algorithm>
#include <ctime>

namespace cmt::collector {
namespace {

constexpr std::uint64_t quiet_ns = 1'000'000'000;
constexpr std::uint64_t page_records = 4096 / slot_bytes;

}  // namespace

std::uint64_t clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t clock_stamp(const Control& control) {
  _mm_lfence();
  return (control.clock_is_ns != 0 ? clock_ns() : __rdtsc()) >> stamp_shift;
}

std::size_t Drainer::pass() {
  Parcel cut{.type = Parcel::Type::cut};
  cut.clock_stamp = clock_stamp(memory_.control());
  cut.clock_ns = clock_ns();
  cut.stamp = cut.clock_stamp - stamp_slack;
  memory_.control().clock_stamp = cut.clock_stamp;
  memory_.control().clock_ns = cut.clock_ns;
  const std::uint32_t rings = memory_.ring_count();
  if (lanes_.size() < rings) lanes_.resize(rings);
  std::size_t moved = 0;
  for (std::uint32_t i = 0; i < rings; ++i) moved += drain(i, cut.clock_ns);
  backlog_.put(std::move(cut));
  return moved;
}

std::size_t Drainer::drain(std::uint32_t number, std::uint64_t now_ns) {
  Ring& ring = memory_.ring(number);
  if (__atomic_load_n(&ring.owner, __ATOMIC_ACQUIRE) == 0) return 0;
  Lane& lane = lanes_[number];
  if (lane.limit == 0) open_lane(ring, lane);
  if (!backlog_.has_room()) return 0;
  Parcel parcel{.ring = number};
  const std::size_t moved = memory_.read(ring, lane.tail, parcel.records);
  if (memory_.is_durable()) give_back_saved(ring, lane);
  if (moved == 0) {
    if (!memory_.is_durable()) rest(ring, lane, now_ns);
    return 0;
  }
  lane.quiet_since_ns = now_ns;
  lane.tail += moved;
  __atomic_store_n(&ring.clock, memory_.control().clock_stamp, __ATOMIC_RELAXED);
  if (!memory_.is_durable()) advance(ring, lane, moved);
  backlog_.put(std::move(parcel));
  return moved;
}

void Drainer::open_lane(const Ring& ring, Lane& lane) {
  lane.tail = ring.tail;
  lane.limit = ring.limit;
  lane.is_whole = lane.limit - lane.tail == ring.slots;
  if (lane.is_whole) whole_bytes_ += ring.slots * slot_bytes;
  lane.quiet_since_ns = clock_ns();
}

void Drainer::give_back_saved(Ring& ring, Lane& lane) {
  lane.is_whole = lane.is_whole || memory_.back(ring, 0, ring.slots);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  const std::uint64_t limit = memory_.saved(ring).place + ring.slots;
  if (!lane.is_whole || (limit <= lane.limit)) return;
  set_limit(ring, lane, std::max(limit, lane.limit));
}

bool Drainer::may_grow(const Ring& ring) const {
  const std::uint64_t at_rest = std::uint64_t{memory_.ring_count()} * ring_slots_at_rest * slot_bytes;
  return whole_bytes_ + std::min<std::uint64_t>(at_rest, rings_bytes_max / 4) + ring.slots * slot_bytes <=
         rings_bytes_max;
}

// A ring that was a quarter full when it was looked at gets all of its places.
void Drainer::advance(Ring& ring, Lane& lane, std::size_t moved) {
  const std::uint64_t allowed = lane.limit - (lane.tail - moved);
  if (!lane.is_whole && moved * 4 >= allowed && may_grow(ring) && memory_.back(ring, 0, ring.slots)) {
    lane.is_whole = true;
    whole_bytes_ += ring.slots * slot_bytes;
  }
  lane.is_shrinking = false;
  if (lane.is_whole) {
    set_limit(ring, lane, lane.tail + ring.slots);
    return;
  }
  const std::uint64_t limit = std::max(lane.limit, lane.tail + std::min(allowed, std::uint64_t{ring_slots_at_rest}));
  if (!memory_.back(ring, lane.limit, limit)) return;
  if (ring.slots > ring_slots_at_rest)
    memory_.release(ring, (lane.tail - moved) / page_records * page_records, lane.tail);
  set_limit(ring, lane, limit);
}

void Drainer::set_limit(Ring& ring, Lane& lane, std::uint64_t limit) {
  lane.limit = limit;
  ring.tail = lane.tail;
  __atomic_store_n(&ring.soft, lane.tail + (limit - lane.tail) / 4, __ATOMIC_RELEASE);
  __atomic_store_n(&ring.limit, limit, __ATOMIC_SEQ_CST);
  if (__atomic_exchange_n(&ring.waiting, 0, __ATOMIC_SEQ_CST) != 0) Memory::wake(&ring.limit);
}

// A thread that has seen the old limit writes one event at most, and that one at the tail.
void Drainer::rest(Ring& ring, Lane& lane, std::uint64_t now_ns) {
  if (!lane.is_whole || ring.slots <= ring_slots_at_rest || now_ns - lane.quiet_since_ns < quiet_ns) return;
  const std::uint64_t limit = lane.tail + ring_slots_at_rest;
  lane.quiet_since_ns = now_ns;
  if (!lane.is_shrinking) {
    lane.is_shrinking = true;
    set_limit(ring, lane, limit);
    return;
  }
  lane.is_shrinking = lane.is_whole = false;
  whole_bytes_ -= ring.slots * slot_bytes;
  memory_.release(ring, limit, lane.tail + ring.slots);
}

void Drainer::call_threads() {
  for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) __atomic_store_n(&memory_.ring(i).soft, 0, __ATOMIC_SEQ_CST);
}

}  // namespace cmt::collector
