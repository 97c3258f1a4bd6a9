/* Takes a thread through its lane: chunks, control words, threads that start and end. */
#define _GNU_SOURCE
#include "cmtreplay/worker/runner.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cmtreplay/worker/clock/recorded_clock.h"
#include "cmtreplay/worker/clock/time_window.h"
#include "cmtreplay/worker/touch.h"

enum { sleep_ns_max = 1000 * 1000 * 1000, join_sleep_ns_max = 100 * 1000 * 1000 };

__thread struct runner* current_runner;
__thread uint32_t current_lane;

static uint64_t position_words(const struct runner* runner) {
  return ((uint64_t)(uintptr_t)runner->at - runner->bias) / sizeof(uint64_t);
}

static void set_state(struct runner* runner, enum lane_state state) {
  __atomic_store_n(&runner->lane->state, (uint32_t)state, __ATOMIC_RELEASE);
}

void runner_begin_touching(struct runner* runner, uint64_t bytes) {
  if (bytes > touch_slow_bytes) set_state(runner, lane_touching);
}

void runner_end_touching(struct runner* runner, uint64_t bytes) {
  if (bytes > touch_slow_bytes) set_state(runner, lane_running);
}

void runner_touch_block(struct runner* runner, char* block, size_t from, size_t size) {
  if (!block || from >= size || size >= runner->replay->control->touched_min) return;
  const uint64_t bytes = size - from;
  runner_begin_touching(runner, bytes);
  touch_block(runner->replay->control, block, from, size);
  runner_end_touching(runner, bytes);
}

/* Wakes the parent, unless it waits for more changes than these. */
static void announce_change(struct control* control, int urgent) {
  const uint32_t changes = __atomic_add_fetch(&control->changes, 1, __ATOMIC_SEQ_CST);
  const int awaited = (int32_t)(changes - __atomic_load_n(&control->wake_at, __ATOMIC_RELAXED)) >= 0;
  if ((__atomic_load_n(&control->parent_sleeps, __ATOMIC_SEQ_CST) && (urgent || awaited)) ||
      __atomic_load_n(&control->main_sleeps, __ATOMIC_SEQ_CST))
    futex_wake_all(&control->changes, 1);
}

/* Chunks. */

static void enter_chunk(struct runner* runner, uint32_t chunk, uint64_t sequence, uint64_t word) {
  assert(word <= chunk_words);
  runner->chunk = chunk;
  runner->sequence = sequence;
  runner->chunk_begin = runner->replay->operations + (uint64_t)chunk * chunk_words;
  runner->at = runner->stop = runner->chunk_begin + word;
  runner->bias = (uint64_t)(uintptr_t)runner->chunk_begin - sequence * chunk_words * sizeof(uint64_t);
}

/* Called at the last word of a chunk. All operations before it have been carried out. */
static void follow_link(struct runner* runner, uint32_t next) {
  struct replay* const replay = runner->replay;
  const uint32_t left = runner->chunk;
  enter_chunk(runner, next, runner->sequence + 1, 0);
  if (!replay->chunk_free) return;
  __atomic_store_n(&replay->chunk_free[left], 1, __ATOMIC_RELEASE);
  announce_change(replay->control, 0);
}

static void wait_for_words(struct runner* runner, uint64_t consumed) {
  struct lane* const lane = runner->lane;
  if (runner->replay->control->clock_recorded) recorded_clock_settle();
  const uint64_t begin = monotonic_ns();
  __atomic_store_n(&lane->position, consumed * sizeof(uint64_t), __ATOMIC_RELAXED);
  set_state(runner, lane_idle);
  announce_change(runner->replay->control, 1);
  __atomic_store_n(&lane->sleeping, 1, __ATOMIC_SEQ_CST);
  for (;;) {
    const uint64_t published = __atomic_load_n(&lane->published, __ATOMIC_SEQ_CST);
    if (published != consumed) break;
    futex_wait((const uint32_t*)(const void*)&lane->published, (uint32_t)published, sleep_ns_max, 1);
  }
  __atomic_store_n(&lane->sleeping, 0, __ATOMIC_SEQ_CST);
  set_state(runner, lane_running);
  lane->starved_ns += monotonic_ns() - begin;
}

/* A frame that a debugger shows: raise() is not the last call, which would take its place. */
__attribute__((noinline)) static void stop_before_event(struct runner* runner) {
  raise(SIGTRAP);
  runner->replay->control->trapped_lane = 0;
}

void runner_refill(struct runner* runner) {
  struct lane* const lane = runner->lane;
  const uint64_t consumed = lane->cursor.opened ? position_words(runner) : 0;
  uint64_t published = __atomic_load_n(&lane->published, __ATOMIC_ACQUIRE);
  if (published == consumed) {
    wait_for_words(runner, consumed);
    published = __atomic_load_n(&lane->published, __ATOMIC_ACQUIRE);
  }
  assert(published > consumed);
  if (__atomic_load_n(&runner->replay->control->trapped_lane, __ATOMIC_RELAXED) == current_lane && current_lane != 0)
    stop_before_event(runner);
  if (!lane->cursor.opened) {
    lane->cursor.opened = 1;
    enter_chunk(runner, lane->first_chunk, 0, 0);
  }
  const uint64_t begin = runner->sequence * chunk_words;
  const uint64_t end = published < begin + chunk_words ? published : begin + chunk_words;
  runner->stop = runner->chunk_begin + (end - begin);
}

/* Threads. */

void runner_open(struct runner* runner, struct replay* replay, uint32_t lane) {
  struct lane* const its = &replay->lanes[lane];
  const uint64_t recorded_min = replay->control->touched_min;
  *runner = (struct runner){.replay = replay, .lane = its, .several = lane != 0};
  runner->touched_at_once_max = recorded_min <= touch_slow_bytes ? recorded_min - 1 : touch_slow_bytes;
  if (replay->latencies) runner->latencies = &replay->latencies[lane];
  if (its->cursor.opened) enter_chunk(runner, its->cursor.chunk, its->cursor.sequence, its->cursor.words);
  set_state(runner, lane_running);
  current_runner = runner;
  current_lane = lane + 1;
}

static void end_thread(struct runner* runner, enum control_word how) {
  struct lane* const lane = runner->lane;
  lane->thread.ended_by = (uint32_t)how;
  lane->cursor.chunk = runner->chunk;
  lane->cursor.sequence = runner->sequence;
  lane->cursor.words = (uint64_t)(runner->at - runner->chunk_begin);
  __atomic_store_n(&lane->position, position_words(runner) * sizeof(uint64_t), __ATOMIC_RELAXED);
  set_state(runner, lane_ended);
  announce_change(runner->replay->control, 1);
}

/* Waits until the recorded time, divided by the pace. */
static void keep_pace(struct runner* runner, uint64_t recorded_ns) {
  const struct replay* const replay = runner->replay;
  const uint64_t due = replay->begin_ns + (uint64_t)((double)recorded_ns / replay->control->pace);
  if (monotonic_ns() >= due) return;
  set_state(runner, lane_pacing);
  const struct timespec until = {.tv_sec = (time_t)(due / 1000000000U), .tv_nsec = (long)(due % 1000000000U)};
  while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0 && errno == EINTR) continue;
  set_state(runner, lane_running);
}

/* Comes to the recorded time of the next operation. */
static void come_to(struct runner* runner, uint64_t recorded_ns) {
  const struct replay* const replay = runner->replay;
  const struct control* const control = replay->control;
  if (control->pace > 0) keep_pace(runner, recorded_ns);
  if (!control->clock_recorded) return;
  const uint64_t ns = program_time(control_clock_points(control), control->clock_point_count, recorded_ns);
  if (control->lane_count > 1) time_window_enter(replay->lanes, control->lane_count, runner->lane, ns);
  recorded_clock_advance(ns);
}

/* Threads start and end as in the trace. The main thread starts all of them, at the recorded position in its own lane.
 * The next thread of a lane starts when the previous one has ended and flushed its caches. Their stacks are in the
 * replay's memory. For each thread pthread_create calls calloc of the allocator under test, as in any program (some 300
 * bytes, for a table of thread-local storage). */

static void* run_thread(void* lane) {
  struct lane* const its = lane;
  __atomic_store_n(&its->thread.number, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
  struct replay* const replay = (struct replay*)(uintptr_t)its->thread.replay;
  struct runner runner;
  runner_open(&runner, replay, (uint32_t)(its - replay->lanes));
  replay->thread_body(&runner);
  /* If the trace ended before the thread did, the thread stays: a thread that ends gives its caches back. */
  while (its->thread.ended_by == control_end) pause();
  return NULL;
}

/* Whether the allocator refuses what pthread_create asks it for. */
static uint32_t refuses_table(void) {
  enum { table_bytes = 1024 };
  void* (*volatile const call)(size_t, size_t) = calloc;
  return call(1, table_bytes) == NULL;
}

static void join(struct lane* lane) {
  pthread_join((pthread_t)lane->thread.handle, NULL);
  lane->thread.started = 0;
}

static void start_thread(struct runner* starter, uint32_t number) {
  struct replay* const replay = starter->replay;
  assert(number != 0 && number < replay->control->lane_count);
  struct lane* const lane = &replay->lanes[number];
  if (lane->thread.started) {
    __atomic_store_n(&starter->lane->waits.waiting, (uint32_t)waiting_for_lane, __ATOMIC_RELAXED);
    join(lane);
    __atomic_store_n(&starter->lane->waits.waiting, (uint32_t)waiting_for_nothing, __ATOMIC_RELAXED);
  }
  lane->thread.replay = (uint64_t)(uintptr_t)replay;
  lane->stated_ns = starter->lane->stated_ns;
  __atomic_store_n(&lane->state, (uint32_t)lane_running, __ATOMIC_RELEASE);
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, replay->stacks + (uint64_t)(number - 1) * lane_stack_bytes, lane_stack_bytes);
  const int error = pthread_create(&thread, &attributes, run_thread, lane);
  pthread_attr_destroy(&attributes);
  if (error) {
    replay->control->thread_refused = refuses_table();
    replay->control->thread_errno = error;
    _exit(1);
  }
  lane->thread.handle = (uint64_t)thread;
  lane->thread.started = 1;
}

/* Touches pages of a block, or gives some back. With several threads the block moves to another slot, and the thread
 * that ends it waits there. Once a realloc was refused, no pages are touched any more: they might be beyond the end of
 * their block. The report says that such an allocator refused calls, and has no fragmentation for it. */
static void use_pages(struct runner* runner, enum control_word what, uint32_t number) {
  const struct replay* const replay = runner->replay;
  void** const slot = &replay->slots[number];
  if (replay->control->touches_recorded && !may_be_smaller(replay)) {
    void* const block = runner->several ? runner->held : *slot;
    const uint64_t bytes = block && what == control_touch ? runner->at[1] * page_bytes : 0;
    runner_begin_touching(runner, bytes);
    if (what == control_touch)
      touch_recorded(block, runner->at);
    else
      touch_discard(block, runner->at);
    runner_end_touching(runner, bytes);
  }
  runner->at += what == control_touch ? 4 : 2;
  if (runner->several) schedule_put_block(&runner->replay->schedule, slot, runner->held);
}

static void give_back(struct runner* runner, enum give_back call) {
  struct lane* const lane = runner->lane;
  switch (call_give_back(&runner->replay->give_back_calls, call, runner->at)) {
    case give_back_done:
      ++lane->given_back.done;
      break;
    case give_back_failed:
      ++lane->given_back.failed;
      break;
    case give_back_missing:
      ++lane->given_back.missing;
      break;
  }
  /* A setting may have started a thread (background_thread=1), whose time begins now. */
  const int sets = call == give_back_mallctl && (runner->at[0] >> 8 & 1);
  if (sets && runner->replay->control->clock_recorded) recorded_clock_settle();
  runner->at += 2;
}

int runner_control(struct runner* runner, uint64_t word) {
  const enum control_word what = (enum control_word)((uint32_t)word >> 4);
  const uint32_t argument = (uint32_t)(word >> 32);
  struct schedule* const schedule = &runner->replay->schedule;
  switch (what) {
    case control_link:
      follow_link(runner, argument);
      return 1;
    case control_start:
      start_thread(runner, argument);
      return 1;
    case control_epoch_begin:
      schedule_begin_epoch(schedule, argument, &runner->lane->waits);
      return 1;
    case control_epoch_end:
      schedule_end_epoch(schedule, argument);
      return 1;
    case control_await_turn:
      schedule_await_turn(schedule, argument, &runner->lane->waits);
      return 1;
    case control_pass_turn:
      schedule_pass_turn(schedule);
      return 1;
    case control_time:
      come_to(runner, *runner->at++);
      return 1;
    case control_alignment:
      assert(argument < 64);
      runner->alignment = argument;
      return 1;
    case control_touch:
    case control_discard:
      use_pages(runner, what, argument);
      return 1;
    case control_give_back:
      give_back(runner, (enum give_back)argument);
      return 1;
    case control_several:
      runner->several = 1;
      return 0;
    case control_exit:
    case control_end:
      break;
  }
  end_thread(runner, what);
  return 0;
}

/* Whether a lane has come to the end of its words. It is known only after the main thread has come to its own end,
 * since lane 0 is published last. */
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
      futex_wait(&control->changes, seen, join_sleep_ns_max, 1);
    }
    if (lane->thread.started && lane->thread.ended_by == control_exit) join(lane);
  }
}
