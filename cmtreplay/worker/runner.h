/* A thread of the worker as it goes through its lane. */
#pragma once

#include <stdint.h>

#include "calls.h"
#include "latency.h"
#include "protocol.h"

/* What all threads share. Only the worker's main thread writes to it, before any other runs. */
struct replay {
  struct control* control;
  struct lane* lanes;
  const uint64_t* operations;
  uint8_t* chunk_free; /* where chunks are given back */
  void** slots;
  void** pointers;               /* where returned pointers are kept, or NULL */
  const uint32_t* drained_slots; /* or NULL */
  char* stacks;
  struct latencies* latencies; /* a lane each, or NULL */
  struct schedule schedule;
  struct calls calls;
  uint64_t begin_ns;
};

struct runner {
  struct replay* replay;
  struct lane* lane;
  const uint64_t* at;
  const uint64_t* stop;        /* `at` may go so far */
  uint64_t bias;               /* `at` as a number, less this, is the position */
  const uint64_t* chunk_begin; /* of the chunk that `at` stands in */
  uint32_t chunk, alignment;
  uint64_t sequence; /* of the chunk in its lane */
  void* held;        /* by an operation_take, for the next operation */
  struct latencies* latencies;
};

/* The thread that runs a lane, from where the lane before stopped until its thread ends. */
void runner_open(struct runner* runner, struct replay* replay, uint32_t lane);

/* More words at `at`: waits until they are published. */
void runner_refill(struct runner* runner);

/* Carries out an operation_control; `at` stands behind it. False: the thread's life is over. */
int runner_control(struct runner* runner, uint64_t word);

/* Runs until the thread's life is over. */
void run_lane(struct runner* runner);

/* What is running in this thread, for whoever has to name the event: signal handlers, calls that check. */
extern __thread struct runner* current_runner;

uint64_t nanoseconds_now(void);

/* Threads: each lane has its own, and its stack. */
void start_thread(struct replay* replay, uint32_t lane);
void finish_threads(struct replay* replay);
