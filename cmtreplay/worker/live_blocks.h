/* The live blocks of a replay that verifies: which bytes they have, and which pattern was written to each.
 *
 * It stores nothing inside the blocks or next to them, since a faulty allocator would overwrite that:
 *
 * - A shadow of the address space says which bytes are in live blocks, usable ones included. It has one bit for each
 *   byte; AddressSanitizer has a byte for eight. It reserves 16 TiB of addresses and touches an eighth of the live
 *   heap.
 *
 * - A hash table with open addressing, keyed by address, has an entry for each block.
 *
 * - Every byte of a block is filled with a pattern of its own: words that depend on the block's seed and on the offset.
 *
 * Table and shadow may only be used under the lock. */
#pragma once

#include <stdint.h>

struct live_block {
  uintptr_t begin; /* 0: an empty entry of the table */
  uint64_t size, usable;
  uint64_t seed;     /* the seed of its pattern; 0: it has none */
  uint64_t position; /* of the call that made it, as in struct finding_block */
  uint32_t lane;
};

/* Returns an errno if there is not enough address space, else 0. */
int live_blocks_open(void);

void live_blocks_lock(void);
void live_blocks_unlock(void);

/* Whether some of these bytes are in a live block. */
int live_blocks_have(uintptr_t begin, uint64_t bytes);

/* The block that begins at an address, or NULL. */
const struct live_block* live_blocks_find(uintptr_t begin);

/* A block that has some of these bytes; begin 0: none has. Searches the whole table, so it is only for findings. */
struct live_block live_blocks_overlapping(uintptr_t begin, uint64_t bytes);

/* Adds a block. If a block without a pattern begins at the address of another one, the other one stays. Returns 0 if
 * the table is full and there is no memory for a wider one: the block is then unknown. */
int live_blocks_insert(const struct live_block* block);

/* Removes and returns the block that begins at an address; begin 0: there is none. */
struct live_block live_blocks_remove(uintptr_t begin);

/* Calls `visit` with every block. */
void live_blocks_for_each(void (*visit)(const struct live_block*));

/* Fills a block with the pattern of a seed. */
void fill_pattern(char* bytes, uint64_t size, uint64_t seed);

/* The first byte that differs from the pattern, or NULL, as for seed 0. */
const char* first_changed(const char* bytes, uint64_t size, uint64_t seed);
