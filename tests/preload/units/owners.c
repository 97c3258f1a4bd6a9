// Compares the owners of memory (preload/program/owners.h) with a model that keeps them byte for byte.
#include "preload/program/owners.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/program/record.h"
#include "preload/program/tracing.h"

bool clock_is_slow, sandbox_entered;
uint64_t clock_slow_stamp(void) { return 0; }

// The rest of the tracer, which is not under test.
uint32_t generation_page[1024];
static bool is_off(void) { return false; }
bool (*enter_recording)(void) = is_off;
void* sys_map_quietly(size_t bytes) { return sandbox_entered ? NULL : sys_map(bytes); }
bool wait_for_room(struct Ring* ring, uint64_t position, uint64_t count) { return ring && position == count; }

enum { heap_bytes = 3 << owner_region_bits, blocks_max = 600, events = 30000 };
static const uintptr_t heap_at = 0x7f0000fff000;

// The event that touched each byte last: its ring's owner number, and the stamp that the collector gives it.
static struct Touch {
  uint8_t owner;
  uint32_t stamp;
} touched[heap_bytes];
static uint32_t now, ring_stamp[256], clock_value;
static uint64_t memory_used;

static struct Block { uint32_t at, size, room; } blocks[blocks_max];
static int block_count;

static void* address_of(size_t at) { return (void*)(heap_at + at); }

static size_t usable_size(void* address) {
  for (int i = 0; i < block_count; i++) {
    if (address_of(blocks[i].at) == address) return blocks[i].room;
  }
  abort();
}

static bool is_free(uint32_t at, uint32_t room) {
  if (at + room > heap_bytes) return false;
  for (int i = 0; i < block_count; i++) {
    if (blocks[i].at < at + room && at < blocks[i].at + blocks[i].room) return false;
  }
  return true;
}

// The number of events for which no true stamp was needed.
static long kept;

// The event's stamp: now, if it is a true one, or else the last one of its ring, if Control::clock never rises by
// itself. It must be later than those of all events of other rings about the same bytes.
static void check_order(uint8_t owner, enum Ownership ownership, uint32_t at, uint32_t size) {
  now++;
  uint32_t* const stamp = &ring_stamp[owner];
  if (ownership != ownership_kept) *stamp = now;
  if (clock_value > *stamp) *stamp = clock_value;
  if (ownership == ownership_unnoted) clock_value = now + 1;
  kept += ownership == ownership_kept;
  for (uint32_t i = at; i < at + (size ? size : 1); i++) {
    if (touched[i].owner != owner && touched[i].stamp >= *stamp) {
      fprintf(stderr, "event %u: ring %d, block of %u at %x: stamp %u, byte %x has ring %d, stamp %u\n", now, owner - 1,
              size, at, *stamp, i, touched[i].owner - 1, touched[i].stamp);
      assert(false);
    }
    touched[i] = (struct Touch){owner, *stamp};
  }
}

// As record() asks: what can be seen soon first.
static void allocate(uint8_t owner, uint32_t at, uint32_t size, uint32_t room) {
  const void* const block = address_of(at);
  const bool is_kept = owners_have_pages(owner, block, size) || owners_have_pieces(owner, block, size);
  const enum Ownership ownership = is_kept ? ownership_kept : owners_take(owner, block, size);
  assert(ownership != ownership_kept || (size < owners_large && owner));
  check_order(owner, ownership, at, size);
  blocks[block_count++] = (struct Block){at, size, room};
}

static void release(uint8_t owner, int which) {
  const struct Block block = blocks[which];
  const bool is_kept = owners_have_pages(owner, address_of(block.at), 1);
  const enum Ownership ownership = is_kept ? ownership_kept : owners_release(owner, address_of(block.at), true);
  assert(ownership != ownership_kept || (block.size < owners_large && owner));
  check_order(owner, ownership, block.at, block.size);
  blocks[which] = blocks[--block_count];
}

static uint32_t random_number(uint32_t* random) { return *random = *random * 1664525 + 1013904223; }

// A block of random size at a random place, or no bytes of room if that is taken.
static struct Block find_room(uint32_t unit, uint32_t size_max, uint32_t* random) {
  random_number(random);
  const uint32_t size = (*random >> 4) % (size_max + 1), room = (size + unit) / unit * unit;
  const uint32_t at = (*random >> 12) % (heap_bytes / unit) * unit;
  return (struct Block){at, size, is_free(at, room) ? room : 0};
}

// Blocks at random places of a few sizes, by rings at random.
static void run(uint32_t unit, uint32_t size_max, uint8_t first_owner, uint32_t random) {
  block_count = 0;
  kept = 0;
  for (int i = 0; i < events; i++) {
    random_number(&random);
    const uint8_t ring = (uint8_t)((random >> 28) < 14 ? 0 : random >> 26 & 1 ? 1 : 2);
    const uint8_t owner = first_owner ? (uint8_t)(first_owner + ring) : 0;
    if (block_count == blocks_max || (block_count && (random >> 8 & 1))) {
      release(owner, (int)((random >> 9) % (unsigned)block_count));
      continue;
    }
    const struct Block block = find_room(unit, size_max, &random);
    if (block.room) allocate(owner, block.at, block.size, block.room);
  }
  while (block_count) release(first_owner, 0);
}

// Three rings, each of which uses every third page, and a heap that was half full before anything was noted. Old blocks
// are released, and few of the blocks that take their place.
static void run_among_old_blocks(uint32_t size_max, uint32_t random) {
  owners_forget();
  memset(touched, 0, sizeof touched);
  block_count = 0;
  kept = 0;
  for (int i = 0; i < blocks_max; i++) {
    const struct Block block = find_room(16, size_max, &random);
    if (block.room) blocks[block_count++] = block;
  }
  for (int i = 0; i < blocks_max; i++) {
    if (random_number(&random) >> 8 & 1) {
      const int which = (int)((random >> 9) % (unsigned)block_count);
      release((uint8_t)(1 + (blocks[which].at >> owner_page_bits) % 3), which);
    }
    const struct Block block = find_room(16, size_max, &random);
    if (block.room && block_count < blocks_max)
      allocate((uint8_t)(1 + (block.at >> owner_page_bits) % 3), block.at, block.size, block.room);
  }
}

static bool is_kept(enum Ownership ownership) { return ownership == ownership_kept; }

int main(void) {
  if (!owners_prepare()) return 1;
  owners_begin_process(&memory_used);
  owners_usable_size = usable_size;
  assert(owner_of_ring(0) == 1 && owner_of_ring(owners_max - 1) == 250 && owner_of_ring(owners_max) == 0);
  assert(owners_take(1, (void*)((uintptr_t)1 << owner_address_bits), 8) == ownership_unnoted);
  char* const page = address_of(0x1000);
  assert(!is_kept(owners_take(1, page, 64)) && is_kept(owners_take(1, page, 64)));
  assert(is_kept(owners_take(1, page + 100 * 16, 1000)) && is_kept(owners_release(1, page, true)) && memory_used == 0);
  assert(owners_have_pages(1, page + 104, 8) && !owners_have_pages(2, page, 1) && !owners_have_pages(1, page, 0));
  assert(owners_have_pages(1, page + 1, 4095) && !owners_have_pages(1, page + 1, 4096));
  assert(!is_kept(owners_take(1, page + 4000, 200)) && is_kept(owners_take(1, page + 4000, 200)));
  assert(!is_kept(owners_take(2, page + 64, 64)) && memory_used == owner_region_pieces);  // now it has two
  assert(is_kept(owners_take(1, page, 64)) && !is_kept(owners_take(1, page, 65)));
  assert(is_kept(owners_take(2, page + 80, 48)) && is_kept(owners_release(1, page, true)) &&
         is_kept(owners_take(1, page, 0)));
  assert(!is_kept(owners_take(1, page, 100000)) && !is_kept(owners_take(1, page + 8192, 16)));
  for (uint32_t at = 0; at < heap_bytes; at += 16) owners_take(0, address_of(at), 16);

  run(16, 300, 1, 1);
  assert(kept > events / 4);
  run(16, 40, 10, 2);
  assert(kept > events / 4);
  run(16, 9000, 1, 3);
  run(16, 80000, 1, 4);
  run(16, 300, 0, 5);  // rings without a number
  assert(kept == 0);
  run(8, 8, 1, 6);  // blocks that share 16 bytes
  assert(kept == 0);
  run(16, 300, 1, 7);
  assert(kept > events / 4);
  run(8, 300, 1, 8);
  assert(memory_used <= 5 * owner_region_pieces);
  for (uint32_t seed = 9; seed < 109; seed++) run_among_old_blocks(3000 + seed % 4 * 2000, seed);

  owners_take(1, address_of(0), 1000);
  assert(owners_release(2, address_of(0), false) == ownership_unnoted);
  owners_usable_size = NULL;
  assert(owners_release(2, address_of(0), true) == ownership_unnoted);
  sandbox_entered = true;  // no memory for that
  assert(owners_take(1, (void*)((uintptr_t)5 << owner_group_bits), 400) == ownership_unnoted);
  return 0;
}
