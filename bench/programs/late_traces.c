// late_traces EVENTS: replaces blocks among 10,000 live ones, from two functions.
#include <stdint.h>
#include <stdlib.h>

static void* live[10000];

static __attribute__((noinline)) void* allocate(uint64_t bytes) { return malloc(bytes); }

static __attribute__((noinline)) void* allocate_inside(uint64_t bytes) {
  void* volatile block = allocate(bytes);
  return block;
}

int main(int argc, char** argv) {
  const long events = argc > 1 ? atol(argv[1]) : 0;
  uint64_t random = 1;
  for (long i = 0; i < events / 2; i++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    void** place = &live[(random >> 33) % (sizeof live / sizeof *live)];
    free(*place);
    *place = random >> 20 & 1 ? allocate((random >> 40) % 500) : allocate_inside((random >> 40) % 900);
  }
  return 0;
}
