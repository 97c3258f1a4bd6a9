// give_back: calls that give memory back, or say when that is done. Prints whether there is a mallctl.
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern int mallctl(const char*, void*, size_t*, void*, size_t) __attribute__((weak));
extern int mallctlnametomib(const char*, size_t*, size_t*) __attribute__((weak));
extern int mallctlbymib(const size_t*, size_t, void*, size_t*, void*, size_t) __attribute__((weak));

static void control(void) {
  _Bool on = 0;
  unsigned arenas = 0;
  ssize_t decay = 5000;
  size_t bytes = sizeof arenas, depth = 3, numbers[3];
  uint64_t epoch = 1;
  mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);  // not recorded, as are questions
  mallctl("arenas.narenas", &arenas, &bytes, NULL, 0);
  if (mallctl("background_thread", NULL, NULL, &on, sizeof on)) puts("refused");
  mallctl("arenas.dirty_decay_ms", NULL, NULL, &decay, sizeof decay);
  decay = -1;
  mallctl("arenas.muzzy_decay_ms", NULL, NULL, &decay, sizeof decay);
  mallctl("no.such.name", NULL, NULL, NULL, 0);  // refused
  mallctl("arena.4096.purge", NULL, NULL, NULL, 0);
  if (mallctlnametomib("arena.0.decay", numbers, &depth)) puts("no such name");
  numbers[1] = 4096;
  mallctlbymib(numbers, depth, NULL, NULL, NULL, 0);
}

int main(void) {
  mallopt(M_MMAP_THRESHOLD, 131072);
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MXFAST, 64);
  mallopt(M_MXFAST, 1 << 30);  // refused
  free(malloc(100000));
  malloc_trim(4096);
  puts(mallctl ? "mallctl" : "no mallctl");
  if (mallctl && mallctlnametomib && mallctlbymib) control();
  return 0;
}
