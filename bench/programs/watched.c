/* The programs that bench/watch_cost watches.

   watched burst: allocates 100 MiB for 20 ms.
   watched clock: makes 20,000 allocations, and prints the monotonic clock right before and right after each. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { burst_bytes = 100 << 20, calls = 20000, first_size = 100000 };

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void pause_ns(long nanoseconds) {
  const struct timespec pause = {0, nanoseconds};
  nanosleep(&pause, NULL);
}

static int burst(void) {
  pause_ns(20000000);
  char* const memory = mmap(NULL, burst_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  memset(memory, 1, burst_bytes);
  pause_ns(20000000);
  munmap(memory, burst_bytes);
  pause_ns(20000000);
  return 0;
}

static int read_clock(void) {
  static long long before[calls], after[calls];
  for (int i = 0; i < calls; i++) {
    before[i] = now_ns();
    void* volatile block = malloc((size_t)(first_size + i));
    after[i] = now_ns();
    free(block);
    if (i % 4 == 0) pause_ns(50000);
  }
  for (int i = 0; i < calls; i++) printf("%d %lld %lld\n", first_size + i, before[i], after[i]);
  return 0;
}

int main(int count, char** words) {
  if (count == 2 && strcmp(words[1], "burst") == 0) return burst();
  if (count == 2 && strcmp(words[1], "clock") == 0) return read_clock();
  return 2;
}
