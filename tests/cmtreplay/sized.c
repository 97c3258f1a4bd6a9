/* An allocator with a sized free that accepts only two sizes: 24 without an alignment, and 256 with 64. */
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

void* __libc_malloc(size_t);
void __libc_free(void*);
void* __libc_memalign(size_t, size_t);

EXPORTED void* malloc(size_t size) { return __libc_malloc(size); }
EXPORTED void* aligned_alloc(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }

EXPORTED void free(void* block) {
  if (block) __builtin_trap();
}

EXPORTED void sdallocx(void* block, size_t size, int flags) {
  if (!((size == 24 && flags == 0) || (size == 256 && flags == 6))) __builtin_trap();
  __libc_free(block);
}
