/* A thread of the worker as it goes through its lane. */
#pragma once

#include <stdint.h>

#include "cmtreplay/latency.h"
#include "cmtreplay/protocol.h"
#include "cmtreplay/worker/calls.h"
#include "cmtreplay/worker/schedule.h"

struct runner;

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
  void (*run_lane)(struct runner*); /* for threads that start: runs until the thread's life is over */
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

/* Runs until the thread's life is over (loop.c). */
void run_lane(struct runner* runner);

/* What is running in this thread, for whoever has to name the event: signal handlers, calls that check. */
extern __thread struct runner* current_runner;

/* The main thread, at its end: waits until every lane has come to the end of its words. */
void finish_threads(struct replay* replay);
