/* A runner: a thread of the worker on its way through its lane. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cmtreplay/latency.h"
#include "cmtreplay/protocol.h"
#include "cmtreplay/worker/calls.h"
#include "cmtreplay/worker/schedule.h"

struct runner;

/* Shared by all threads. Only the main thread writes to it, before it starts the others, except to `resize_refused`. */
struct replay {
  struct control* control;
  struct lane* lanes;
  const uint64_t* operations;
  uint8_t* chunk_free; /* a byte for each chunk, set when it has been left; NULL: prepared */
  void** slots;
  void** pointers;               /* for returned pointers, or NULL */
  const uint32_t* drained_slots; /* or NULL */
  char* stacks;
  struct latencies* latencies; /* one for each lane, or NULL */
  struct schedule schedule;
  struct calls calls;
  struct give_back_calls give_back_calls;
  uint64_t begin_ns;
  uint32_t resize_refused; /* 1 once the allocator has refused a realloc: blocks may be smaller than the words say */
  void (*thread_body)(struct runner*); /* run by each thread that starts */
};

struct runner {
  struct replay* replay;
  struct lane* lane;
  const uint64_t* at;
  const uint64_t* stop;        /* the end of the words that may be read */
  uint64_t bias;               /* the position in bytes is `at` less this */
  const uint64_t* chunk_begin; /* of the current chunk */
  uint32_t chunk, alignment;
  int several;                  /* threads: blocks are handed over in slots (schedule.h) */
  uint64_t sequence;            /* number of the chunk in its lane */
  uint64_t touched_at_once_max; /* larger blocks are touched outside of the loop (touch_block) */
  void* held;                   /* by operation_take_block, for the next operation */
  struct latencies* latencies;
};

/* Whether a block may be smaller than the words say. If the block's own realloc was refused, on whatever thread, the
 * thread that has taken the block from its slot sees that. */
static inline int may_be_smaller(const struct replay* replay) {
  return __atomic_load_n(&replay->resize_refused, __ATOMIC_RELAXED) != 0;
}

/* Called around the replay's own work on a block. On a large block this takes long, and must not count as a hang of the
 * allocator. */
void runner_begin_touching(struct runner* runner, uint64_t bytes);
void runner_end_touching(struct runner* runner, uint64_t bytes);

/* Touches a new block, or a resized one from its first new byte on, as touch_block() does. */
void runner_touch_block(struct runner* runner, char* block, size_t from, size_t size);

/* Begins a thread's way through a lane, at the position at which the lane's previous thread stopped. */
void runner_open(struct runner* runner, struct replay* replay, uint32_t lane);

/* Waits until more words are published, and sets `at` and `stop`. */
void runner_refill(struct runner* runner);

/* Carries out an operation_control, whose next word is at `at`. Returns 0 if the thread ends or `several` is set. */
int runner_control(struct runner* runner, uint64_t word);

/* Carries out operations until the thread ends (loop.c). */
void run_lane(struct runner* runner);

/* The runner of this thread. Verification reports its current operation. */
extern __thread struct runner* current_runner;
/* Number + 1 of the lane that this thread runs or has run, for signal handlers; 0: none. A thread may also crash after
 * its way through the lane, for example in the allocator's work at the thread's end. */
extern __thread uint32_t current_lane;

/* Called by the main thread at its end. Waits until every lane has come to its end. */
void finish_threads(struct replay* replay);
