/// The live blocks of large_blocks_min bytes and more, as the program knows them when it gives them back: free names an
/// address alone.
///
/// Large blocks begin in different pages. So the table has one word for each page of the address space in which such
/// blocks are: groups of 2 GiB point to leaves of 1 MiB. A filter of 8 KiB is asked first, so that the free of
/// another block costs one load from the cache.
///
/// No lock and no allocation: a word is written by the thread that has the block from the allocator, and leaves are
/// taken from mappings by compare-and-swap. Another thread may only set is_written, by compare-and-swap. A forked child
/// has its parent's table, which is true for its own memory.
///
/// A block is open after its allocation is recorded. It is closed when all of its pages are recorded or, below 1 MiB,
/// after one round. Rounds visit open blocks only, so that a block that was filled costs nothing any more.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/program/kernel.h"

enum {
  large_filter_bits = 16,
  large_page_bits = 12,
  large_leaf_bits = 20,   // of addresses with one leaf: 1 MiB
  large_group_bits = 31,  // of addresses with one group: 2 GiB
  large_address_bits = address_bits,
};

struct LargeBlock {
  uintptr_t address;  ///< 0: none
  uint64_t bytes;
  bool was_resident;  ///< all of its pages were in memory when it was given
  bool was_zeroed;    ///< by the allocator: the program may read its pages without a write
  bool is_written;    ///< all of its pages are in memory since, and recorded
};

/// The least size of a block whose pages are recorded; 0: none are.
extern uint64_t large_blocks_min HIDDEN;
extern uint64_t large_blocks_filter[(1 << large_filter_bits) / 64] HIDDEN;

static inline uint32_t large_filter_bit(const void* block) {
  return (uint32_t)((uintptr_t)block >> 4) & ((1 << large_filter_bits) - 1);
}

/// False: no large block begins here. True: perhaps.
static inline bool large_block_may_be(const void* block) {
  const uint32_t bit = large_filter_bit(block);
  return (__atomic_load_n(&large_blocks_filter[bit / 64], __ATOMIC_RELAXED) >> bit % 64 & 1) != 0;
}

/// Whether a large block begins here.
bool large_block_is(const void* address);

/// Forgets all blocks.
void large_blocks_forget(void);
/// Notes a block that was allocated, which is not open yet. False: there is no memory for it.
bool large_block_note(const struct LargeBlock* block);
/// Opens a noted block with pages that were not in memory when it was given.
void large_block_open(const void* address);
/// The rounds pass over the block from now on.
void large_block_close(const void* address);
/// All pages of the block are in memory, and recorded. Does nothing if the block is gone.
void large_block_set_written(const struct LargeBlock* block);
/// The noted block that contains an address, or one with the address 0. It looks back as far as the largest block that
/// was ever noted.
struct LargeBlock large_block_around(uintptr_t address);
/// Some pages of a noted block were given back to the kernel: it is open, and all of them are to be asked about again.
/// False: it is gone.
bool large_block_reopen(const struct LargeBlock* block);
/// The block at an address, which the caller is about to give back; it is noted no more.
struct LargeBlock large_block_take(const void* address);
enum LargeBlocks { large_blocks_open, large_blocks_all };
/// Calls visit(block, argument) for those that are noted, by rising address within a leaf, until it returns false.
/// Other threads may give them back meanwhile.
void large_blocks_visit(enum LargeBlocks which, bool (*visit)(const struct LargeBlock*, void*), void* argument);
