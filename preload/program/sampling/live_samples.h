/// The live samples of the process: a table of 65,536 entries without a lock, for threads and signal handlers.
///
/// A sample is in one of two buckets of 16 entries. An entry is claimed before its event is recorded, and filled in
/// afterwards. From there on two may end it: the thread that frees the block, and the one that raises the interval
/// (sampler.c). The second one holds an entry while it records the event of its end, with all signals blocked. A free
/// waits for it, since the block's address may come back right after the free.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/program/kernel.h"

enum {
  live_samples_ways = 16,
  live_samples_buckets = 4096,
  live_samples_max = live_samples_ways * live_samples_buckets,
  live_samples_crowded = live_samples_max / 4 * 3,
};

/// One entry. `key`: the block's address; 0: free. `state`: the bytes that were asked for (56 bits), above them the
/// doublings of the interval plus 1 (7 bits), and is_of_operator; or one of the three below.
struct LiveSample {
  uintptr_t key;
  uint64_t state;
};
enum {
  live_sample_begins = 0,
  live_sample_is_held = 1,
  live_sample_is_over = 2,  ///< its block was freed while nothing was recorded: its end is to be recorded
  live_sample_shift = 56,
};

/// A sample that was taken out.
struct TakenSample {
  uint64_t bytes;
  uint32_t doublings;
  bool is_of_operator;  ///< it was recorded as the block of an operator new
};

/// Maps the table, of 1 MiB, of which pages are touched as they are used. False: there is no memory.
bool live_samples_begin(void);

/// Claims an entry for a block; NULL: there is no room.
struct LiveSample* live_samples_claim(const void* block);
/// Fills it in, for a block of less than 2^56 bytes.
void live_samples_fill(struct LiveSample* entry, struct TakenSample sample);

/// Looks for a block's sample, which no other thread can end but by raising the interval. False: it is none.
bool live_samples_find(const void* block, struct TakenSample* found);

/// Takes a block's sample out, before the block is freed. False: it is none.
bool live_samples_take(const void* block, struct TakenSample* taken);

/// The same, while nothing is recorded: the entry stays until live_samples_visit_over().
bool live_samples_end_later(const void* block);
/// Calls record_end() for the block of each such entry, and empties it. With signals blocked.
void live_samples_visit_over(void (*record_end)(const void* block));

/// For each sample, with signals blocked: holds it, and ends it where `ends` returns true.
void live_samples_visit(bool (*ends)(const void* block, struct TakenSample* sample, void* argument), void* argument);
/// The same for one entry that was filled in.
void live_sample_visit(struct LiveSample* entry, bool (*ends)(const void*, struct TakenSample*, void*), void* argument);

/// How many there are, roughly: signal handlers and other threads may be at work.
uint32_t live_samples_count(void);

/// Forgets all: in a process that begins.
void live_samples_clear(void);
