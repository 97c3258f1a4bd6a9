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

std::optional<std::size_t> Drainer::pass(bool must) {
  CPU_ZERO(&busy_);
  if (!must && !backlog_.has_room()) return std::nullopt;
  Parcel cut{.type = Parcel::Type::cut};
  cut.clock_stamp = clock_stamp(memory_.control());
  cut.clock_ns = clock_ns();
  cut.stamp = cut.clock_stamp - stamp_slack;
  memory_.control().clock_stamp = cut.clock_stamp;
  memory_.control().clock_ns = cut.clock_ns;
  const std::uint32_t rings = memory_.ring_count();
  if (lanes_.size() < rings) lanes_.resize(rings);
  pace_.begin_pass(cut.clock_ns);
  std::size_t moved = 0;
  for (std::uint32_t i = 0; i < rings; ++i) moved += drain(i, cut.clock_ns);
  backlog_.put(std::move(cut));
  pace_.end_pass();
  return moved;
}

std::size_t Drainer::drain(std::uint32_t number, std::uint64_t now_ns) {
  Ring& ring = memory_.ring(number);
  if (__atomic_load_n(&ring.owner, __ATOMIC_ACQUIRE) == 0) return 0;
  Lane& lane = lanes_[number];
  if (lane.limit == 0) open_lane(ring, lane);
  const std::size_t moved = read(ring, lane);
  if (memory_.is_durable()) give_back_saved(ring, lane);
  if (moved == 0) {
    if (!memory_.is_durable()) rest(ring, lane, now_ns);
    if (lane.is_crowded && __atomic_load_n(&ring.waiting, __ATOMIC_ACQUIRE) != 0) open_page(ring, lane);
    return 0;
  }
  lane.quiet_since_ns = now_ns;
  __atomic_store_n(&ring.tail, lane.tail, __ATOMIC_RELEASE);
  __atomic_store_n(&ring.clock, memory_.control().clock_stamp, __ATOMIC_RELAXED);
  if (!memory_.is_durable()) advance(ring, lane, moved);
  backlog_.put({.ring = number, .records = packer_.take()});
  return moved;
}

bool Drainer::skip_unpublished() {
  bool found = false;
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    const std::size_t skipped = lane.limit == 0 ? 0 : memory_.skip(memory_.ring(i), lane.tail, lane.limit, packer_);
    if (skipped == 0) continue;
    found = true;
    lane.tail += skipped;
    backlog_.put({.ring = i, .records = packer_.take()});
  }
  return found;
}

// In pieces, so that a thread that waits can go on while the rest is read.
std::size_t Drainer::read(Ring& ring, Lane& lane) {
  constexpr std::uint64_t piece = 1024;
  std::size_t moved = 0, got;
  do {
    got = memory_.read(ring, lane.tail, piece, packer_);
    moved += got;
    lane.tail += got;
    if (got == piece && lane.is_whole && !memory_.is_durable()) set_limit(ring, lane, lane.tail + ring.slots);
  } while (got == piece && moved < ring.slots);
  return moved;
}

void Drainer::open_lane(const Ring& ring, Lane& lane) {
  lane.tail = ring.tail;
  lane.limit = ring.limit;
  lane.is_whole = lane.limit - lane.tail == ring.slots;
  lane.is_crowded = !lane.is_whole && lane.limit - lane.tail <= ring_slots_crowded;
  if (lane.is_whole) whole_bytes_ += ring.slots * slot_bytes;
  lane.quiet_since_ns = clock_ns();
}

void Drainer::give_back_saved(Ring& ring, Lane& lane) {
  lane.is_whole = lane.is_whole || memory_.back(ring, 0, ring.slots);
  const std::uint64_t limit = memory_.saved(ring).position + ring.slots;
  if (!lane.is_whole || (limit <= lane.limit)) return;
  set_limit(ring, lane, std::max(limit, lane.limit));
}

// Besides what all rings have where they are at rest: of the large ones more than a page.
bool Drainer::may_grow(std::uint64_t bytes) const {
  const std::uint64_t rings = memory_.ring_count(), large = std::min<std::uint64_t>(rings, rings_big);
  const std::uint64_t at_rest = (large * ring_slots_at_rest + (rings - large) * page_records) * slot_bytes;
  return whole_bytes_ + at_rest + bytes <= rings_bytes_max;
}

// Where there are many rings each has one page, the one that its tail is in, and the next when that is read or when its
// thread has to wait for it: an event of several records may not fit what is left.
void Drainer::open_page(Ring& ring, Lane& lane) {
  const bool is_reached = lane.tail == lane.limit;
  const std::uint64_t limit =
      is_reached ? lane.tail / page_records * page_records + page_records : lane.limit + page_records;
  if (limit > lane.tail + ring.slots || !memory_.back(ring, lane.limit, limit)) return;
  memory_.release(ring, lane.released, lane.tail);
  lane.released = lane.tail / page_records * page_records;
  set_limit(ring, lane, limit);
}

// A ring that was a quarter full when it was looked at gets all of its places.
void Drainer::advance(Ring& ring, Lane& lane, std::size_t moved) {
  const std::uint64_t allowed = lane.is_whole ? ring.slots : lane.limit - (lane.tail - moved);
  pace_.found(moved, allowed);
  const std::uint32_t processor = __atomic_load_n(&ring.processor, __ATOMIC_RELAXED);
  if (moved * 16 >= allowed && processor != 0) CPU_SET(processor - 1, &busy_);
  if (!lane.is_whole && moved * 4 >= allowed && may_grow(ring.slots * slot_bytes) &&
      memory_.back(ring, 0, ring.slots)) {
    lane.is_whole = true;
    whole_bytes_ += ring.slots * slot_bytes;
  }
  lane.is_shrinking = false;
  if (lane.is_whole) {
    set_limit(ring, lane, lane.tail + ring.slots);
    return;
  }
  if (lane.is_crowded) {
    const bool waits = __atomic_load_n(&ring.waiting, __ATOMIC_ACQUIRE) != 0;
    const bool is_short = lane.limit - lane.tail < page_records / 2;
    const bool has_room = may_grow(memory_.ring_count() * page_records * slot_bytes);
    lane.tail == lane.limit || waits || (is_short && has_room) ? open_page(ring, lane)
                                                               : set_limit(ring, lane, lane.limit);
    return;
  }
  const std::uint64_t limit = std::max(lane.limit, lane.tail + std::min(allowed, std::uint64_t{ring_slots_at_rest}));
  if (!memory_.back(ring, lane.limit, limit)) return;
  memory_.release(ring, (lane.tail - moved) / page_records * page_records, lane.tail);
  set_limit(ring, lane, limit);
}

void Drainer::set_limit(Ring& ring, Lane& lane, std::uint64_t limit) {
  lane.limit = limit;
  __atomic_store_n(&ring.soft, lane.tail + (limit - lane.tail) / 4, __ATOMIC_SEQ_CST);
  if (calls_threads()) __atomic_store_n(&ring.soft, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&ring.limit, limit, __ATOMIC_SEQ_CST);
  if (__atomic_exchange_n(&ring.waiting, 0, __ATOMIC_SEQ_CST) != 0) Memory::wake(&ring.limit);
}

// A thread that has seen the old limit writes one event at most, and that one at the tail.
void Drainer::rest(Ring& ring, Lane& lane, std::uint64_t now_ns) {
  if (!lane.is_whole || now_ns - lane.quiet_since_ns < quiet_ns) return;
  const bool is_small = ring.slots <= ring_slots_at_rest;
  const std::uint64_t limit = is_small ? (lane.tail / page_records + 2) * page_records : lane.tail + ring_slots_at_rest;
  lane.quiet_since_ns = now_ns;
  if (!lane.is_shrinking) {
    lane.is_shrinking = true;
    set_limit(ring, lane, limit);
    return;
  }
  lane.is_shrinking = lane.is_whole = false;
  lane.is_crowded = is_small;
  lane.released = lane.tail / page_records * page_records;
  whole_bytes_ -= ring.slots * slot_bytes;
  memory_.release(ring, limit, lane.tail + ring.slots);
}

// Who called them may have done so just before `soft` was set.
bool Drainer::calls_threads() const {
  const Control& control = memory_.control();
  return __atomic_load_n(&control.paused, __ATOMIC_SEQ_CST) != 0 ||
         __atomic_load_n(&control.verdict, __ATOMIC_SEQ_CST) != verdict_go_on;
}

void Drainer::call_threads() {
  for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) __atomic_store_n(&memory_.ring(i).soft, 0, __ATOMIC_SEQ_CST);
}

}  // namespace cmt::collector
