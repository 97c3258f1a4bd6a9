// The memory that floor.c (in the program) and floor_drain.c (the other process) share: rings of 16-byte slots, as
// small as possible. Positions never wrap; position p is slot p % slots, in lap p / slots. A slot is written if its
// valid bit has the parity of the lap, so an event shares nothing else.
#pragma once

#include <stdint.h>

enum { floor_rings = 1024, floor_slots = 16384, floor_valid = 1 << 13, floor_parity = 1 << 14 };

struct FloorSlot {
  uint64_t head;  ///< address << 16 | parity | valid | kind
  uint64_t body;  ///< size << 32 | stamp
};

struct FloorRing {
  _Alignas(128) uint64_t tail;  ///< positions read, written by the drainer
  uint32_t waiting;             ///< the thread waits (a futex) for `tail` to rise
};

struct FloorMemory {
  uint32_t rings_used;
  uint32_t asleep;  ///< the drainer sleeps on this futex until it is 0
  struct FloorRing rings[floor_rings];
  _Alignas(4096) struct FloorSlot slots[floor_rings][floor_slots];
};

static inline uint64_t floor_marks(uint64_t position) {
  return floor_valid | (position & floor_slots ? (uint64_t)floor_parity : 0);
}
