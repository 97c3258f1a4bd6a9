/* The simplest allocator there is, as an example of how to bring one's own:
 *
 *     cc -O2 -shared -fPIC -o bump.so example_bump.c
 *     cmtreplay --alloc=libc --alloc=./bump.so app.cmt
 *
 * It hands out one address after the other and takes nothing back. So it is fast, and as large as all requests
 * together. Blocks have no header. It works for one thread only.
 *
 * cmtreplay emulates the calls that it does not define with malloc and free, and reports that. A program would get
 * libc's calls instead, so a real allocator defines all ten (worker/calls.h). */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORTED __attribute__((visibility("default")))

enum { granule = 16 };

static char* next;
static char* end;

static int reserve(void) {
  const size_t bytes = (size_t)1 << 40;
  void* range = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return 0;
  next = range;
  end = next + bytes;
  return 1;
}

static void* fail(void) {
  errno = ENOMEM;
  return NULL;
}

EXPORTED void* aligned_alloc(size_t alignment, size_t size) {
  if (!next && !reserve()) return NULL; /* mmap has set errno */
  char* const block = (char*)(((uintptr_t)next + alignment - 1) & ~(alignment - 1));
  if (block > end || size > (size_t)(end - block)) return fail();
  next = block + (size ? size : 1);
  return block;
}

EXPORTED void* malloc(size_t size) { return aligned_alloc(granule, size); }

EXPORTED void free(void* block) { (void)block; }

/* Fresh pages are zero, and none is used twice. */
EXPORTED void* calloc(size_t count, size_t size) {
  size_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? fail() : malloc(bytes);
}

/* Without a header nobody knows the old size; but the old block ends before the new one begins. */
EXPORTED void* realloc(void* old, size_t size) {
  char* const block = malloc(size);
  if (!block || !old) return block;
  const size_t old_bytes_max = (size_t)(block - (char*)old);
  return memcpy(block, old, size < old_bytes_max ? size : old_bytes_max);
}
