/* Lets a lane sleep until the others are near enough in recorded time. */
#include "cmtreplay/worker/clock/time_window.h"

#include <assert.h>

enum { check_ns = 1000 * 1000 }; /* since a lane that begins to wait for something else wakes nobody */

static uint32_t moves; /* a futex: counts the times that were stated while a lane slept */
static uint32_t sleepers;
static uint64_t least_ns; /* an earlier result of least_stated(): times only grow */

/* Whether an idle lane has got words. It states its time when it runs. */
static int is_about_to_state(const struct lane* lane) {
  return __atomic_load_n(&lane->published, __ATOMIC_ACQUIRE) * sizeof(uint64_t) !=
         __atomic_load_n(&lane->position, __ATOMIC_RELAXED);
}

static int holds_back(const struct lane* lane) {
  const uint32_t state = __atomic_load_n(&lane->state, __ATOMIC_ACQUIRE);
  if (state == lane_unused || state == lane_ended || (state == lane_idle && !is_about_to_state(lane))) return 0;
  return __atomic_load_n(&lane->waits.waiting, __ATOMIC_RELAXED) != waiting_for_lane;
}

/* The least time that another lane has stated. */
static uint64_t least_stated(const struct lane* lanes, uint32_t count, const struct lane* self) {
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < count; ++i) {
    if (&lanes[i] == self || !holds_back(&lanes[i])) continue;
    const uint64_t stated = __atomic_load_n(&lanes[i].stated_ns, __ATOMIC_SEQ_CST);
    if (stated < least) least = stated;
  }
  return least;
}

static int is_in_window(const struct lane* lanes, uint32_t count, const struct lane* lane, uint64_t ns) {
  if (ns <= __atomic_load_n(&least_ns, __ATOMIC_RELAXED) + time_window_ns) return 1;
  const uint64_t least = least_stated(lanes, count, lane);
  if (least != UINT64_MAX) __atomic_store_n(&least_ns, least, __ATOMIC_RELAXED);
  return least == UINT64_MAX || ns <= least + time_window_ns;
}

void time_window_enter(struct lane* lanes, uint32_t count, struct lane* lane, uint64_t ns) {
  assert(lane >= lanes && lane < lanes + count);
  __atomic_store_n(&lane->stated_ns, ns, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&sleepers, __ATOMIC_SEQ_CST)) {
    __atomic_add_fetch(&moves, 1, __ATOMIC_SEQ_CST);
    futex_wake_all(&moves, 0);
  }
  if (is_in_window(lanes, count, lane, ns)) return;
  __atomic_store_n(&lane->waits.waiting, (uint32_t)waiting_for_time, __ATOMIC_RELAXED);
  __atomic_add_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
  for (;;) {
    const uint32_t seen = __atomic_load_n(&moves, __ATOMIC_SEQ_CST);
    if (is_in_window(lanes, count, lane, ns)) break;
    futex_wait(&moves, seen, check_ns, 0);
  }
  __atomic_sub_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
  __atomic_store_n(&lane->waits.waiting, 0, __ATOMIC_RELAXED);
}
