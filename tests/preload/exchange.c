// exchange FILE: eight threads allocate blocks, each of a size of its own, exchange them through a few cells, and free
// the blocks that they get. Each thread writes the sizes that it freed to FILE, in order.
// exchange FILE turns: the same, but now and then one thread works alone, so that it gets the lease.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <malloc.h>

enum { threads = 8, rounds = 6000, slots = 64, first_size = 2000, mark_size = 500, turn_rounds = 2000, pairs = 80000 };

static _Atomic(uint64_t*) slot[slots];
static _Atomic uint32_t next_size = first_size;
static struct {
  uint32_t count;
  uint32_t sizes[2 * rounds];
} ended[threads];

static bool has_turns;
static _Atomic uint32_t waiting, turns_over;

// Each thread has its turn.
static void alone(uint32_t self, uint32_t turn) {
  if (turn % threads != self) {
    waiting++;
    while (turns_over == turn) sched_yield();
    return;
  }
  while (waiting != (turn + 1) * (threads - 1)) sched_yield();
  for (int i = 0; i < pairs; i++) {
    if (i == pairs - 100) turns_over = turn + 1;
    free(malloc(100));
  }
}

static void* take(uint32_t self, _Atomic(uint64_t*)* place, uint64_t* put) {
  uint64_t* found = atomic_exchange(place, put);
  if (found) ended[self].sizes[ended[self].count++] = (uint32_t)*found;
  return found;
}

// Half of the blocks are made by realloc of the block in the cell, which ends that one.
static void* exchange(void* argument) {
  uint32_t self = (uint32_t)(uintptr_t)argument, random = 12345 + self;
  free(malloc(mark_size + self));
  for (int i = 0; i < rounds; i++) {
    if (has_turns && i % turn_rounds == 0) alone(self, (uint32_t)(i / turn_rounds));
    random = random * 1664525 + 1013904223;
    _Atomic(uint64_t*)* place = &slot[random >> 16 & (slots - 1)];
    uint32_t size = next_size++;
    uint64_t* old = take(self, place, NULL);
    if (!(random >> 30 & 1)) free(old), old = NULL;
    uint64_t* fresh = realloc(old, size);
    *fresh = size;
    free(take(self, place, fresh));
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  has_turns = argc == 3;
  mallopt(M_ARENA_MAX, 1);  // so that a freed block can be another thread's at once
  pthread_t thread[threads];
  for (uintptr_t i = 0; i < threads; i++) pthread_create(&thread[i], NULL, exchange, (void*)i);
  for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  FILE* out = fopen(argv[1], "w");
  for (int t = 0; t < threads; t++) {
    for (uint32_t i = 0; i < ended[t].count; i++) fprintf(out, "%d %u\n", t, ended[t].sizes[i]);
  }
  return fclose(out) != 0;
}
