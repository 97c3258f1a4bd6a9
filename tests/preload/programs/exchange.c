// exchange FILE [WORD]...: eight threads allocate blocks, exchange them through a few cells, and free the blocks that
// they get. Each writes to FILE which blocks it has ended, in order, for exchange_check.cpp.
//
//   small   blocks of 8 to 1,024 bytes, half of them of 8; by default from 2,000 bytes on, each of a size of its own
//
//   wide    4,096 cells in place of 64: more memory is live, and is split and merged
//
//   turns   now and then one thread works alone, without the others
//   seed=N  of the random numbers
//
// A block's name is (thread that made it, number of the allocation in that thread). It is written into the block, so
// that the thread that ends the block knows it. A thread's own events are in order in every trace: so the checker finds
// there the same name by counting.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <malloc.h>

enum {
  threads = 8,
  rounds = 6000,
  cells_max = 4096,
  turn_rounds = 2000,
  pairs = 80000,
  ended_max = 2 * rounds + (rounds / turn_rounds) * pairs,
};
// The first and the last block of a thread that count, and sizes of all that count: as in exchange_check.cpp.
enum { begin_size = 1500, end_size = 1600, small_max = 1024, first_size = 2000, pair_size = 100 };

static _Atomic(uint64_t*) cell[cells_max];
static uint32_t cells = 64;
static bool is_small, has_turns;
static uint32_t seed = 12345;
static _Atomic uint32_t next_size = first_size;
static _Atomic uint32_t waiting, turns_over;

struct Self {
  uint32_t number, random, made;
  uint64_t count;  ///< of names in `ended`
  uint64_t* ended;
};

static uint32_t random_number(struct Self* self) {
  self->random = self->random * 1664525 + 1013904223;
  return self->random >> 10;
}

static uint64_t next_name(struct Self* self) { return (uint64_t)self->number << 32 | self->made++; }

static void note_end(struct Self* self, uint64_t name) { self->ended[self->count++] = name; }

// Each thread has its turn.
static void alone(struct Self* self, uint32_t turn) {
  if (turn % threads != self->number) {
    waiting++;
    while (turns_over == turn) sched_yield();
    return;
  }
  while (waiting != (turn + 1) * (threads - 1)) sched_yield();
  for (int i = 0; i < pairs; i++) {
    if (i == pairs - 100) turns_over = turn + 1;
    note_end(self, next_name(self));
    free(malloc(pair_size));
  }
}

static uint64_t* take(struct Self* self, _Atomic(uint64_t*)* place, uint64_t* put) {
  uint64_t* found = atomic_exchange(place, put);
  if (found) note_end(self, *found);
  return found;
}

static uint32_t size_of_next(struct Self* self) {
  if (!is_small) return next_size++;
  uint32_t random = random_number(self);
  return random & 1 ? 8 : 8 + (random >> 1) % (small_max - 7);
}

// Half of the blocks are made by realloc of the block in the cell, which ends that one.
static void exchange(struct Self* self) {
  for (uint32_t i = 0; i < rounds; i++) {
    if (has_turns && i % turn_rounds == 0) alone(self, i / turn_rounds);
    uint32_t random = random_number(self), size = size_of_next(self);
    _Atomic(uint64_t*)* place = &cell[random >> 1 & (cells - 1)];
    uint64_t* old = take(self, place, NULL);
    if (!(random & 1)) free(old), old = NULL;
    uint64_t* fresh = realloc(old, size);
    *fresh = next_name(self);
    free(take(self, place, fresh));
  }
}

static void* run(void* argument) {
  struct Self* self = argument;
  free(malloc(begin_size + self->number));
  exchange(self);
  free(malloc(end_size + self->number));
  return NULL;
}

static bool read_words(int count, char** words) {
  for (int i = 0; i < count; i++) {
    if (strcmp(words[i], "small") == 0)
      is_small = true;
    else if (strcmp(words[i], "wide") == 0)
      cells = cells_max;
    else if (strcmp(words[i], "turns") == 0)
      has_turns = true;
    else if (strncmp(words[i], "seed=", 5) == 0)
      seed = (uint32_t)strtoul(words[i] + 5, NULL, 10);
    else
      return false;
  }
  return true;
}

int main(int argc, char** argv) {
  if (argc < 2 || !read_words(argc - 2, argv + 2)) return 2;
  mallopt(M_ARENA_MAX, 1);  // so that a freed block can be another thread's at once
  static struct Self self[threads];
  pthread_t thread[threads];
  for (uint32_t i = 0; i < threads; i++) {
    self[i] = (struct Self){.number = i, .random = seed * 7919 + i * 104729};
    self[i].ended = malloc(ended_max * sizeof(uint64_t));
  }
  for (int i = 0; i < threads; i++) pthread_create(&thread[i], NULL, run, &self[i]);
  for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  FILE* out = fopen(argv[1], "wb");
  for (int i = 0; i < threads; i++) {
    fwrite(&self[i].count, sizeof self[i].count, 1, out);
    fwrite(self[i].ended, sizeof(uint64_t), self[i].count, out);
  }
  return fclose(out) != 0;
}
