// The frame of the programs kinds_*.c: each has a table of small programs, NAME and function. Without an argument it
// prints their names; with one it runs that program, whose output is the same each time.
#pragma once
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct kind {
  const char* name;
  void (*run)(void);
};

static inline void say(const char* what, long value) {
  printf("%s: %ld\n", what, value);
  fflush(stdout);
}

static inline void say_error(const char* what, long result) {
  printf("%s: %ld %s\n", what, result, result < 0 ? strerror(errno) : "");
}

// Allocates and frees some blocks of sizes that depend on seed.
static inline void churn(unsigned seed) {
  void* blocks[16] = {0};
  for (unsigned i = 0; i < 200; i++) {
    void** place = &blocks[i % 16];
    free(*place);
    *place = malloc((seed * 37 + i * 101) % 2000 + 1);
  }
  for (unsigned i = 0; i < 16; i++) {
    free(blocks[i]);
  }
}

static inline int run_kind(const struct kind* kinds, size_t count, int argc, char** argv) {
  for (size_t i = 0; i < count; i++) {
    if (argc < 2) {
      puts(kinds[i].name);
    } else if (strcmp(kinds[i].name, argv[1]) == 0) {
      kinds[i].run();
      return 0;
    }
  }
  return argc < 2 ? 0 : 2;
}
