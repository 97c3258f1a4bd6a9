// A plugin that allocates in a function of its own.

#include <stdlib.h>

void* volatile plugin_kept;

static void __attribute__((noinline)) keep_blocks(int count) {
  while (count-- > 0) plugin_kept = malloc(3000);
}

void keep_in_plugin(void) {
  keep_blocks(5);
  plugin_kept = 0;
}
