/* Keeps the operations of several threads in order, as loosely as the program did (doc/design/replay_threads.md).
 *
 * A thread that makes a block has to notice that another one sleeps on the block's slot. A fence between its store and
 * its load of `sleepers` would cost every allocation 20 cycles. So the sleeper pays instead: for each sleep,
 * membarrier(2) puts the fence into all running threads. If the kernel has no membarrier, a sleep lasts at most a
 * millisecond before the next check.
 *
 * With more threads than processors some thread sleeps nearly always. A wake-up for each allocation would cost too
 * much. So `awaited` counts the sleepers by a hash of their slots, and only an allocation for such a slot makes a
 * system call.
 *
 * `pending` counts the lanes that take part in each epoch. The last of them to end the epoch advances `epochs_done`.
 *
 * All functions may be called by any number of threads. The memory that they work on is the caller's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cmtreplay/protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stored in a slot for a block that the allocator refused. */
#define SCHEDULE_REFUSED ((void*)1)

enum { awaited_kinds = 1024 };

struct schedule {
  uint32_t spins;                                 /* checks before a sleep; 0: fewer CPUs than threads */
  uint32_t sleep_ns;                              /* the longest sleep without another check */
  uint32_t* pending;                              /* lanes that have not ended an epoch: [epoch & pending_mask] */
  uint32_t pending_mask;                          /* so many epochs are known at a time, less 1 */
  uint32_t sleepers __attribute__((aligned(64))); /* threads that sleep for a block */
  uint32_t awaited[awaited_kinds] __attribute__((aligned(64))); /* the same, by schedule_hash() of their slots */
  uint32_t epochs_done __attribute__((aligned(64))), epoch_sleepers;
  uint32_t turn __attribute__((aligned(64))), turn_sleepers;
};

/* `pending` belongs to the caller, and counts the lanes of each epoch before any of them ends it. */
void schedule_open(struct schedule* schedule, uint32_t spins, uint32_t* pending, uint32_t pending_mask);

void* schedule_wait_for_block(struct schedule* schedule, void** slot, struct wait_counts* counts);
void schedule_wake_sleepers(void** slot);

static inline size_t schedule_hash(void** slot) { return (uintptr_t)slot / sizeof *slot % awaited_kinds; }

static inline int schedule_is_awaited(const struct schedule* schedule, void** slot) {
  return __builtin_expect(__atomic_load_n(&schedule->sleepers, __ATOMIC_RELAXED) != 0, 0) &&
         __atomic_load_n(&schedule->awaited[schedule_hash(slot)], __ATOMIC_RELAXED) != 0;
}

/* Puts a block, or NULL for one that was refused, into an empty slot. */
static inline void schedule_put_block(struct schedule* schedule, void** slot, void* block) {
  __atomic_store_n(slot, block ? block : SCHEDULE_REFUSED, __ATOMIC_RELEASE);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (schedule_is_awaited(schedule, slot)) schedule_wake_sleepers(slot);
}

/* Takes out a block that this thread put in. */
static inline void* schedule_take_own_block(void** slot) {
  void* const block = __atomic_load_n(slot, __ATOMIC_RELAXED);
  __atomic_store_n(slot, NULL, __ATOMIC_RELAXED);
  return block == SCHEDULE_REFUSED ? NULL : block;
}

/* Takes out a block that another thread puts in, now or later. */
static inline void* schedule_take_block(struct schedule* schedule, void** slot, struct wait_counts* counts) {
  void* block = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (__builtin_expect(!block, 0)) block = schedule_wait_for_block(schedule, slot, counts);
  __atomic_store_n(slot, NULL, __ATOMIC_RELAXED);
  return block == SCHEDULE_REFUSED ? NULL : block;
}

/* Waits until all lanes have ended epoch - 2. */
void schedule_begin_epoch(struct schedule* schedule, uint32_t epoch, struct wait_counts* counts);
void schedule_end_epoch(struct schedule* schedule, uint32_t epoch);

/* Turns are counted from 0. A thread that has had its turn passes it on. */
void schedule_await_turn(struct schedule* schedule, uint32_t turn, struct wait_counts* counts);
void schedule_pass_turn(struct schedule* schedule);

#ifdef __cplusplus
}
#endif
