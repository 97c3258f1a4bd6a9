// A program that frees all but one in 25 of its blocks, so that the others keep most pages, and waits until it is
// ended.
//
//     scattered BLOCKS
//
// It prints "ready" when it waits.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { block_bytes = 1000, kept_each = 25 };

int main(int argc, char** argv) {
  const int blocks = argc == 2 ? atoi(argv[1]) : 0;
  char** all = calloc((size_t)blocks + 1, sizeof *all);
  if (!all) return 1;
  for (int i = 0; i < blocks; i++) {
    all[i] = malloc(block_bytes);
    if (!all[i]) return 1;
    memset(all[i], 1, block_bytes);
  }
  for (int i = 0; i < blocks; i++) {
    if (i % kept_each != 0) free(all[i]);
  }
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
