// kept EVENTS PARTS [END]: the same calls in each run, some EVENTS in all, from several places. After each part but the
// last it says "part", and waits for a line. END: kill (SIGKILL), abort; else it exits.
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { slots = 3000 };
static void* blocks[slots];
static uint64_t state = 1;

static uint32_t next_random(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}

__attribute__((noinline)) static void* make(uint32_t depth, size_t size) {
  void* made = depth ? make(depth - 1, size) : size % 3 ? malloc(size) : calloc(2, size);
  __asm__ volatile("" : : "r"(made) : "memory");
  return made;
}

__attribute__((noinline)) static void* grow(void* block, size_t size) {
  void* made = realloc(block, size);
  __asm__ volatile("" : : "r"(made) : "memory");
  return made;
}

// The first slots keep their blocks to the end.
static void step(void) {
  const uint32_t chance = next_random(), slot = chance % slots, size = 1 + next_random() % 500;
  if (!blocks[slot]) {
    blocks[slot] = make(chance % 5, size);
  } else if (slot >= 100 && chance % 4 == 0) {
    blocks[slot] = grow(blocks[slot], size);
  } else if (slot >= 100) {
    free(blocks[slot]);
    blocks[slot] = NULL;
  }
}

int main(int argc, char** argv) {
  const long events = atol(argv[1]), parts = atol(argv[2]);
  const char* end = argc > 3 ? argv[3] : "";
  for (long part = 1; part <= parts; part++) {
    for (long i = 0; i < events / parts; i++) step();
    char line[16];
    if (part != parts && (write(1, "part\n", 5) != 5 || read(0, line, sizeof line) <= 0)) return 1;
  }
  if (strcmp(end, "kill") == 0) raise(SIGKILL);
  if (strcmp(end, "abort") == 0) abort();
  return 0;
}
