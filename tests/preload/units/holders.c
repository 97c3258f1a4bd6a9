// Who is said to have touched memory last (preload/program/holders.h), against a model that keeps it byte for byte.
#include "preload/program/holders.h"

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
bool enter_recording(void) { return false; }
void* sys_map_quietly(size_t bytes) { return sandbox_entered ? NULL : sys_map(bytes); }
bool wait_for_room(struct Ring* ring, uint64_t position, uint64_t count) { return ring && position == count; }

enum { heap_bytes = 3 << holder_region_bits, blocks_max = 600, events = 30000 };
static const uintptr_t heap_at = 0x7f0000fff000;

// The event that touched each byte last: its ring's holder number, and the stamp that the collector gives it.
static struct Touch {
  uint8_t holder;
  uint32_t stamp;
} touched[heap_bytes];
static uint32_t now, ring_stamp[256], clock_told;
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

// How many events had told stamps.
static long kept;

// The event's stamp: now, if it is a true one, or else the last one of its ring, if the clock that threads are told
// never rises by itself. It has to be behind those of all events of other rings about the same bytes.
static void check_order(uint8_t holder, enum Holding holding, uint32_t at, uint32_t size) {
  now++;
  uint32_t* const stamp = &ring_stamp[holder];
  if (holding != holding_kept) *stamp = now;
  if (clock_told > *stamp) *stamp = clock_told;
  if (holding == holding_unnoted) clock_told = now + 1;
  kept += holding == holding_kept;
  for (uint32_t i = at; i < at + (size ? size : 1); i++) {
    if (touched[i].holder != holder && touched[i].stamp >= *stamp) {
      fprintf(stderr, "event %u: ring %d, block of %u at %x: stamp %u, byte %x has ring %d, stamp %u\n", now,
              holder - 1, size, at, *stamp, i, touched[i].holder - 1, touched[i].stamp);
      assert(false);
    }
    touched[i] = (struct Touch){holder, *stamp};
  }
}

// As record() asks: what can be seen soon first.
static void allocate(uint8_t holder, uint32_t at, uint32_t size, uint32_t room) {
  const void* const block = address_of(at);
  const bool is_kept = holders_have_pages(holder, block, size) || holders_have_pieces(holder, block, size);
  const enum Holding holding = is_kept ? holding_kept : holders_take(holder, block, size);
  assert(holding != holding_kept || (size < holders_large && holder));
  check_order(holder, holding, at, size);
  blocks[block_count++] = (struct Block){at, size, room};
}

static void release(uint8_t holder, int which) {
  const struct Block block = blocks[which];
  const bool is_kept = holders_have_pages(holder, address_of(block.at), 1);
  const enum Holding holding = is_kept ? holding_kept : holders_release(holder, address_of(block.at), true);
  assert(holding != holding_kept || (block.size < holders_large && holder));
  check_order(holder, holding, block.at, block.size);
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
static void run(uint32_t unit, uint32_t size_max, uint8_t first_holder, uint32_t random) {
  block_count = 0;
  kept = 0;
  for (int i = 0; i < events; i++) {
    random_number(&random);
    const uint8_t ring = (uint8_t)((random >> 28) < 14 ? 0 : random >> 26 & 1 ? 1 : 2);
    const uint8_t holder = first_holder ? (uint8_t)(first_holder + ring) : 0;
    if (block_count == blocks_max || (block_count && (random >> 8 & 1))) {
      release(holder, (int)((random >> 9) % (unsigned)block_count));
      continue;
    }
    const struct Block block = find_room(unit, size_max, &random);
    if (block.room) allocate(holder, block.at, block.size, block.room);
  }
  while (block_count) release(first_holder, 0);
}

// Three rings, each of which uses every third page, and a heap that was half full before anything was noted. Old blocks
// are released, and few of the blocks that take their place.
static void run_among_old_blocks(uint32_t size_max, uint32_t random) {
  holders_forget();
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
      release((uint8_t)(1 + (blocks[which].at >> holder_page_bits) % 3), which);
    }
    const struct Block block = find_room(16, size_max, &random);
    if (block.room && block_count < blocks_max)
      allocate((uint8_t)(1 + (block.at >> holder_page_bits) % 3), block.at, block.size, block.room);
  }
}

static bool is_kept(enum Holding holding) { return holding == holding_kept; }

int main(void) {
  holders_begin_process(&memory_used);
  holders_usable_size = usable_size;
  assert(holder_of_ring(0) == 1 && holder_of_ring(holders_max - 1) == 250 && holder_of_ring(holders_max) == 0);
  assert(holders_take(1, (void*)((uintptr_t)1 << holder_address_bits), 8) == holding_unnoted);
  char* const page = address_of(0x1000);
  assert(!is_kept(holders_take(1, page, 64)) && is_kept(holders_take(1, page, 64)));
  assert(is_kept(holders_take(1, page + 100 * 16, 1000)) && is_kept(holders_release(1, page, true)) &&
         memory_used == 0);
  assert(holders_have_pages(1, page + 104, 8) && !holders_have_pages(2, page, 1) && !holders_have_pages(1, page, 0));
  assert(holders_have_pages(1, page + 1, 4095) && !holders_have_pages(1, page + 1, 4096));
  assert(!is_kept(holders_take(1, page + 4000, 200)) && is_kept(holders_take(1, page + 4000, 200)));
  assert(!is_kept(holders_take(2, page + 64, 64)) && memory_used == holder_region_pieces);  // now it has two
  assert(is_kept(holders_take(1, page, 64)) && !is_kept(holders_take(1, page, 65)));
  assert(is_kept(holders_take(2, page + 80, 48)) && is_kept(holders_release(1, page, true)) &&
         is_kept(holders_take(1, page, 0)));
  assert(!is_kept(holders_take(1, page, 100000)) && !is_kept(holders_take(1, page + 8192, 16)));
  for (uint32_t at = 0; at < heap_bytes; at += 16) holders_take(0, address_of(at), 16);

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
  assert(memory_used <= 5 * holder_region_pieces);
  for (uint32_t seed = 9; seed < 109; seed++) run_among_old_blocks(3000 + seed % 4 * 2000, seed);

  holders_take(1, address_of(0), 1000);
  assert(holders_release(2, address_of(0), false) == holding_unnoted);
  holders_usable_size = NULL;
  assert(holders_release(2, address_of(0), true) == holding_unnoted);
  sandbox_entered = true;  // no memory for that
  assert(holders_take(1, (void*)((uintptr_t)5 << holder_group_bits), 400) == holding_unnoted);
  return 0;
}
