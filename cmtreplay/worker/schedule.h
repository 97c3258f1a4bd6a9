/* The order of operations on several threads, as loose as a program's own.
 *
 * Threads do not take turns. Each runs on until it needs a block that another has not made yet, and blocks pass from
 * one to the other through slots: the maker puts the block into an empty slot, whoever frees or resizes it takes it out
 * and leaves the slot empty. So the slot is the dependency, and nothing else is shared; a taker that comes late costs
 * an ordinary load, which is what the program paid too.
 *
 * One that comes early spins a little and then sleeps on the slot itself, as a futex (its lower half is 0 while it is
 * empty). The maker has to see that somebody sleeps. A fence between its store and its look at `sleepers` would cost
 * every allocation 20 cycles, so the sleeper pays instead: membarrier(2) puts the fence into all running threads, once
 * a sleep. Where the kernel has none, a sleep is cut to a millisecond and looks again.
 *
 * How far may a thread run ahead of the others? Without a bound memory would no longer be the program's, and a slot
 * could not be reused: a taker that is far ahead would mistake the block before for its own. So the trace is cut into
 * epochs, and nobody begins epoch e before all have ended e - 2. The run-ahead window is two epochs; a slot that was
 * emptied in epoch e may be filled again from e + 2 on, without a look. Epochs are counted: `pending` of each says how
 * many lanes take part; the last of them to end it moves `epochs_done` on.
 *
 * Turns are the other extreme: one thread at a time, in recorded order (--order=strict).
 *
 * Everything may be used by any number of threads. The memory that it works on is the caller's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cmtreplay/protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What stands in a slot for a block that the allocator refused. */
#define SCHEDULE_REFUSED ((void*)1)

struct schedule {
  uint32_t spins;                                 /* looks before a sleep; 0: there are fewer CPUs than threads */
  uint32_t sleep_ns;                              /* the longest sleep without another look */
  uint32_t* pending;                              /* lanes that have not ended an epoch yet: [epoch & pending_mask] */
  uint32_t pending_mask;                          /* the pending are known for as many epochs at a time */
  uint32_t sleepers __attribute__((aligned(64))); /* threads that sleep for a block */
  uint32_t epochs_done __attribute__((aligned(64))), epoch_sleepers;
  uint32_t turn __attribute__((aligned(64))), turn_sleepers;
};

/* `pending` belongs to the caller, and counts the lanes of each epoch before any of them ends it. */
void schedule_open(struct schedule* schedule, uint32_t spins, uint32_t* pending, uint32_t pending_mask);

void* schedule_wait_for_block(struct schedule* schedule, void** slot, struct wait_counts* counts);
void schedule_wake(void** slot);

/* Puts a block, or NULL for one that was refused, into an empty slot. */
static inline void schedule_put(struct schedule* schedule, void** slot, void* block) {
  __atomic_store_n(slot, block ? block : SCHEDULE_REFUSED, __ATOMIC_RELEASE);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (__builtin_expect(__atomic_load_n(&schedule->sleepers, __ATOMIC_RELAXED) != 0, 0)) schedule_wake(slot);
}

/* Takes out a block that this thread put in itself. */
static inline void* schedule_take_own(void** slot) {
  void* const block = __atomic_load_n(slot, __ATOMIC_RELAXED);
  __atomic_store_n(slot, NULL, __ATOMIC_RELAXED);
  return block == SCHEDULE_REFUSED ? NULL : block;
}

/* Takes out a block that another thread puts in, now or later. */
static inline void* schedule_take(struct schedule* schedule, void** slot, struct wait_counts* counts) {
  void* block = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (__builtin_expect(!block, 0)) block = schedule_wait_for_block(schedule, slot, counts);
  __atomic_store_n(slot, NULL, __ATOMIC_RELAXED);
  return block == SCHEDULE_REFUSED ? NULL : block;
}

/* Begins an epoch: waits until all lanes have ended the one before the last. */
void schedule_begin_epoch(struct schedule* schedule, uint32_t epoch, struct wait_counts* counts);
void schedule_end_epoch(struct schedule* schedule, uint32_t epoch);

/* Turns are counted from 0. Whoever has had one passes it on. */
void schedule_await_turn(struct schedule* schedule, uint32_t turn, struct wait_counts* counts);
void schedule_pass_turn(struct schedule* schedule);

#ifdef __cplusplus
}
#endif
