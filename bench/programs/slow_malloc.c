/* malloc of libc with a busy loop: SLOW_TURNS turns in every 16th call, for bench/gate. A processor overlaps a few
 * turns with its other work. Many turns at once cost their full time, so their number sets the slowdown finely. */
#include <stddef.h>
#include <stdlib.h>

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

#define EXPORTED __attribute__((visibility("default")))

static unsigned turns, calls;

__attribute__((constructor)) static void read_turns(void) {
  const char* const text = getenv("SLOW_TURNS");
  turns = text ? (unsigned)atoi(text) : 0;
}

EXPORTED void* malloc(size_t size) {
  if (++calls % 16 == 0)
    for (volatile unsigned turn = 0; turn < turns; ++turn) continue;
  return __libc_malloc(size);
}
EXPORTED void* calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
EXPORTED void* realloc(void* block, size_t size) { return __libc_realloc(block, size); }
EXPORTED void* memalign(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
EXPORTED void* aligned_alloc(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
EXPORTED void free(void* block) { __libc_free(block); }
