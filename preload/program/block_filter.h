/// Which addresses a free of the sampled variant has to look at: a filter of 64 KiB. Nearly all blocks are no samples,
/// and their free costs one byte's read.
///
/// A byte counts the blocks in its 64-byte cells that are to be looked at. The address is folded, so that a byte has
/// many cells. A byte of block_filter_always stays so.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/program/kernel.h"

enum { block_filter_bits = 16, block_filter_bytes = 1 << block_filter_bits, block_filter_always = 255 };

/// NULL before block_filter_begin(): there is no sampler, and adding does nothing.
extern uint8_t* block_filter HIDDEN;

/// False: there is no memory.
bool block_filter_begin(void);

static inline uint8_t* block_filter_at(const void* block) {
  return &block_filter[((uintptr_t)block >> 6 ^ (uintptr_t)block >> 22) & (block_filter_bytes - 1)];
}

/// False: the block is none of those. True: perhaps.
static inline bool block_filter_has(const void* block) { return *block_filter_at(block) != 0; }

void block_filter_add(const void* block);
void block_filter_remove(const void* block);
/// For all blocks in a range, for ever.
void block_filter_add_always(const void* begin, size_t bytes);
/// Leaves only those.
void block_filter_clear(void);
