/* The cost of a dependency that is already satisfied, for bench/replay_overhead: it takes a block out of a slot
 * that another thread filled long ago. For comparison it takes one out of a slot that this thread filled, and does a
 * plain load. Compile with cmtreplay/worker/schedule.c and cmtreplay/protocol.c. Prints nanoseconds each, the least of
 * nine rounds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "cmtreplay/worker/schedule.h"

enum { slots = 4096, rounds = 9, passes = 200 };

static void* slot[slots];
static struct schedule schedule;

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void* put_all(void* unused) {
  for (size_t i = 0; i < slots; ++i) schedule_put_block(&schedule, &slot[i], &slot[i]);
  return unused;
}

/* Fills all slots in a thread of its own, then takes them out in this one. */
static double pass_ns(int foreign) {
  static struct wait_counts counts;
  pthread_t maker;
  pthread_create(&maker, NULL, put_all, NULL);
  pthread_join(maker, NULL);
  for (size_t i = 0; i < slots; ++i) __builtin_prefetch(&slot[i], 1);
  uintptr_t sum = 0;
  const double begin = now_ns();
  for (size_t i = 0; i < slots; ++i) {
    void** const place = &slot[(i * 1021) % slots];
    sum += (uintptr_t)(foreign ? schedule_take_block(&schedule, place, &counts) : schedule_take_own_block(place));
  }
  const double taken = now_ns() - begin;
  if (counts.block_waits != 0 || sum == 0) fprintf(stderr, "a block was not there\n");
  return taken / slots;
}

static double least_ns(int foreign) {
  double least = 1e9;
  for (int i = 0; i < rounds * passes; ++i) {
    const double now = pass_ns(foreign);
    if (now < least) least = now;
  }
  return least;
}

int main(void) {
  static uint32_t pending[1];
  schedule_open(&schedule, 0, pending, 0);
  printf("%.2f %.2f\n", least_ns(1), least_ns(0));
  return 0;
}
