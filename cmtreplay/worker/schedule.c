/* Waits, wake-ups and epochs, as schedule.h describes. No thread wakes another one unless it sleeps. */
#define _GNU_SOURCE
#include "cmtreplay/worker/schedule.h"

#include <assert.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { sleep_ns_max = 100 * 1000 * 1000, sleep_ns_blind = 1000 * 1000 };

#define COMPLETE 0x80000000U /* in `pending`, with the number of an epoch that has ended */
#define EPOCH_BITS 0x7fffffffU

static void pause_briefly(void) {
#if defined __x86_64__
  __builtin_ia32_pause();
#endif
}

void schedule_open(struct schedule* schedule, uint32_t spins, uint32_t* pending, uint32_t pending_mask) {
  assert((pending_mask & (pending_mask + 1)) == 0);
  *schedule = (struct schedule){.spins = spins, .pending = pending, .pending_mask = pending_mask};
  const int fenced = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  schedule->sleep_ns = fenced ? sleep_ns_max : sleep_ns_blind;
}

/* Waits are counted and timed. */

static uint64_t begin_wait(struct wait_counts* counts) {
  __atomic_store_n(&counts->waiting, (uint32_t)waiting_for_lane, __ATOMIC_RELAXED);
  return monotonic_ns();
}

static void end_wait(struct wait_counts* counts, uint64_t begin, uint64_t* waits, uint64_t* wait_ns) {
  __atomic_store_n(&counts->waiting, 0, __ATOMIC_RELAXED);
  ++*waits;
  *wait_ns += monotonic_ns() - begin;
}

/* Blocks. */

void schedule_wake_sleepers(void** slot) { futex_wake_all((const uint32_t*)(void*)slot, 0); }

/* Sleeps until a block is in the slot. A futex sees only the lower half of a slot, which is 0 also for a block at a
 * multiple of 4 GiB. So the whole slot is checked each time. */
static void* sleep_for_block(struct schedule* schedule, void** slot) {
  void* block;
  uint32_t* const awaited = &schedule->awaited[schedule_hash(slot)];
  __atomic_fetch_add(awaited, 1, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&schedule->sleepers, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  while (!(block = __atomic_load_n(slot, __ATOMIC_ACQUIRE)))
    futex_wait((const uint32_t*)(void*)slot, 0, schedule->sleep_ns, 0);
  __atomic_fetch_sub(&schedule->sleepers, 1, __ATOMIC_SEQ_CST);
  __atomic_fetch_sub(awaited, 1, __ATOMIC_SEQ_CST);
  return block;
}

void* schedule_wait_for_block(struct schedule* schedule, void** slot, struct wait_counts* counts) {
  const uint64_t begin = begin_wait(counts);
  void* block = NULL;
  for (uint32_t spin = 0; !block && spin < schedule->spins; ++spin) {
    pause_briefly();
    block = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  }
  if (!block) block = sleep_for_block(schedule, slot);
  assert(block);
  end_wait(counts, begin, &counts->block_waits, &counts->block_wait_ns);
  return block;
}

/* Two numbers rise: the epochs done, and the turn. Both wrap around. */

static int reached(const uint32_t* number, uint32_t wanted) {
  return (int32_t)(__atomic_load_n(number, __ATOMIC_ACQUIRE) - wanted) >= 0;
}

static void wait_for_number(const struct schedule* schedule, uint32_t* number, uint32_t wanted, uint32_t* sleepers) {
  for (uint32_t spin = 0; spin < schedule->spins; ++spin) {
    if (reached(number, wanted)) return;
    pause_briefly();
  }
  if (reached(number, wanted)) return;
  __atomic_fetch_add(sleepers, 1, __ATOMIC_SEQ_CST);
  for (;;) {
    const uint32_t seen = __atomic_load_n(number, __ATOMIC_SEQ_CST);
    if ((int32_t)(seen - wanted) >= 0) break;
    futex_wait(number, seen, sleep_ns_max, 0);
  }
  __atomic_fetch_sub(sleepers, 1, __ATOMIC_SEQ_CST);
}

static void wake_for_number(const uint32_t* number, const uint32_t* sleepers) {
  if (__atomic_load_n(sleepers, __ATOMIC_SEQ_CST) != 0) futex_wake_all(number, 0);
}

void schedule_begin_epoch(struct schedule* schedule, uint32_t epoch, struct wait_counts* counts) {
  const uint32_t wanted = epoch - 1; /* so many epochs are done when epoch - 2 is */
  if (epoch < 2 || reached(&schedule->epochs_done, wanted)) return;
  const uint64_t begin = begin_wait(counts);
  wait_for_number(schedule, &schedule->epochs_done, wanted, &schedule->epoch_sleepers);
  end_wait(counts, begin, &counts->window_waits, &counts->window_wait_ns);
}

/* Epochs may end out of order. The last lane of an epoch stores the epoch's number. A thread that finds the number of
 * the next epoch advances `epochs_done`. */
void schedule_end_epoch(struct schedule* schedule, uint32_t epoch) {
  uint32_t* const pending = schedule->pending;
  const uint32_t mask = schedule->pending_mask;
  const uint32_t left = __atomic_sub_fetch(&pending[epoch & mask], 1, __ATOMIC_ACQ_REL);
  assert(left < COMPLETE / 2); /* else the epoch has ended, or no lane took part */
  if (left != 0) return;
  __atomic_store_n(&pending[epoch & mask], COMPLETE | (epoch & EPOCH_BITS), __ATOMIC_SEQ_CST);
  for (;;) {
    uint32_t done = __atomic_load_n(&schedule->epochs_done, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pending[done & mask], __ATOMIC_SEQ_CST) != (COMPLETE | (done & EPOCH_BITS))) return;
    if (__atomic_compare_exchange_n(&schedule->epochs_done, &done, done + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      wake_for_number(&schedule->epochs_done, &schedule->epoch_sleepers);
  }
}

void schedule_await_turn(struct schedule* schedule, uint32_t turn, struct wait_counts* counts) {
  if (reached(&schedule->turn, turn)) return;
  const uint64_t begin = begin_wait(counts);
  wait_for_number(schedule, &schedule->turn, turn, &schedule->turn_sleepers);
  end_wait(counts, begin, &counts->turn_waits, &counts->turn_wait_ns);
}

void schedule_pass_turn(struct schedule* schedule) {
  __atomic_fetch_add(&schedule->turn, 1, __ATOMIC_SEQ_CST);
  wake_for_number(&schedule->turn, &schedule->turn_sleepers);
}
