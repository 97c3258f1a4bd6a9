/* Threads begin and end where the trace says. The main thread starts all of them, at the recorded place of its own
 * lane; a lane's next thread starts once the one before has ended, caches flushed and all. Their stacks lie in memory
 * of the replay's own. What pthread_create asks of calloc for itself (a table of thread-local storage, some 300 bytes a
 * thread) it asks of the allocator under test, as in any program. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "runner.h"

enum { sleep_ns_max = 100 * 1000 * 1000 };

static void* run_thread(void* lane) {
  struct lane* const its = lane;
  struct replay* const replay = (struct replay*)(uintptr_t)its->thread.replay;
  struct runner runner;
  runner_open(&runner, replay, (uint32_t)(its - replay->lanes));
  run_lane(&runner);
  /* Where the trace ended first, the thread stays: at its end it would give its caches back. */
  while (its->thread.ended_by == control_end) pause();
  return NULL;
}

static void join(struct lane* lane) {
  pthread_join((pthread_t)lane->thread.handle, NULL);
  lane->thread.started = 0;
}

void start_thread(struct replay* replay, uint32_t number) {
  struct lane* const lane = &replay->lanes[number];
  if (lane->thread.started) join(lane);
  lane->thread.replay = (uint64_t)(uintptr_t)replay;
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, replay->stacks + (uint64_t)(number - 1) * lane_stack_bytes, lane_stack_bytes);
  const int error = pthread_create(&thread, &attributes, run_thread, lane);
  pthread_attr_destroy(&attributes);
  if (error) {
    replay->control->thread_errno = error;
    _exit(1);
  }
  lane->thread.handle = (uint64_t)thread;
  lane->thread.started = 1;
}

/* Whether a lane has come to the end of all that there is. Asked once the main thread has, whose lane is published
 * last.
 */
static int is_over(const struct lane* lane) {
  if (!lane->thread.started) return 1;
  return __atomic_load_n(&lane->state, __ATOMIC_ACQUIRE) == lane_ended &&
         __atomic_load_n(&lane->position, __ATOMIC_RELAXED) ==
             __atomic_load_n(&lane->published, __ATOMIC_RELAXED) * sizeof(uint64_t);
}

void finish_threads(struct replay* replay) {
  struct control* const control = replay->control;
  for (uint32_t i = 1; i < control->lane_count; ++i) {
    struct lane* const lane = &replay->lanes[i];
    __atomic_store_n(&control->main_sleeps, 1, __ATOMIC_SEQ_CST);
    for (;;) {
      const uint32_t seen = __atomic_load_n(&control->changes, __ATOMIC_SEQ_CST);
      if (is_over(lane)) break;
      schedule_sleep(&control->changes, seen, sleep_ns_max, 1);
    }
    if (lane->thread.started && lane->thread.ended_by == control_exit) join(lane);
  }
}
