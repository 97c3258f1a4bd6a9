/* A program that only allocates, for bench/replay_overhead: the same calls as a loop, and as a trace.
 *
 *     bare_loop EVENTS            runs the loop and prints nanoseconds of CPU time a call, the least of nine rounds
 *     bare_loop EVENTS --trace    writes the trace
 *
 * A table holds 10,000 blocks. Each step frees one at random and allocates another of 16 to 1,039 bytes in its place.
 * It touches the block as cmtreplay does: it writes into each page, and to the last byte. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { blocks = 10000, rounds = 9 };

struct state {
  uint64_t random;
  void* block[blocks];
  unsigned long tag[blocks];
};

static uint64_t next_random(struct state* state) {
  state->random = state->random * 6364136223846793005u + 1442695040888963407u;
  return state->random >> 33;
}

static size_t place_of(uint64_t random) { return random % blocks; }
static size_t size_of(uint64_t random) { return 16 + (random >> 14) % 1024; }

static void touch(char* block, size_t size) {
  block[0] = 1;
  for (char* page = (char*)(((uintptr_t)block | 4095) + 1); page < block + size - 1; page += 4096) *page = 1;
  ((volatile char*)block)[size - 1] = 1;
}

static void step(struct state* state) {
  const uint64_t random = next_random(state);
  void** const block = &state->block[place_of(random)];
  free(*block);
  *block = malloc(size_of(random));
  touch(*block, size_of(random));
}

static void write_step(struct state* state, unsigned long tag) {
  const uint64_t random = next_random(state);
  unsigned long* const old = &state->tag[place_of(random)];
  if (*old)
    printf("free(<%lu>)\n", *old);
  else
    printf("free(0)\n");
  printf("malloc(%zu) = <%lu>\n", size_of(random), tag);
  *old = tag;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double round_seconds(unsigned long steps) {
  static struct state state;
  for (size_t i = 0; i < blocks; ++i) free(state.block[i]);
  state = (struct state){.random = 1};
  const double begin = seconds();
  for (unsigned long i = 0; i < steps; ++i) step(&state);
  return seconds() - begin;
}

int main(int count, char** arguments) {
  if (count < 2) return 2;
  const unsigned long steps = strtoul(arguments[1], NULL, 10) / 2;
  if (count > 2) {
    static struct state state = {.random = 1};
    for (unsigned long tag = 1; tag <= steps; ++tag) write_step(&state, tag);
    return 0;
  }
  double least = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const double now = round_seconds(steps);
    if (now < least) least = now;
  }
  printf("%.2f\n", least * 1e9 / (2 * (double)steps));
  return 0;
}
