/* An allocator as a table of functions. The worker always calls through this table: a call costs what a call through
 * the procedure linkage table costs any program, and the null allocator, an allocator with gaps and an ordinary one
 * run through the same loop, so that their times may be compared. */
#define _GNU_SOURCE
#include "calls.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

struct calls process_calls(void) {
  return (struct calls){malloc,        free,           calloc,   realloc, reallocarray,
                        aligned_alloc, posix_memalign, memalign, valloc,  pvalloc};
}

void call_addresses(const struct calls* calls, const void* addresses[call_count]) {
  memcpy(addresses, calls, call_count * sizeof *addresses);
}

_Static_assert(sizeof(struct calls) == call_count * sizeof(void*), "as many names as calls");

/* Stand-ins. They know malloc and free alone. */

static struct calls own;

static void* replaced_calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  void* block = own.malloc(bytes);
  return block ? memset(block, 0, bytes) : NULL;
}

/* Without the old block's size nothing can be copied; the replay's blocks hold nothing, and are touched anyway. */
static void* replaced_realloc(void* old, size_t size) {
  void* block = own.malloc(size);
  if (block) own.free(old);
  return block;
}

static void* replaced_reallocarray(void* old, size_t count, size_t size) {
  size_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? NULL : own.realloc(old, bytes);
}

static void* replaced_aligned_alloc(size_t alignment, size_t size) {
  (void)alignment;
  return own.malloc(size);
}

static int replaced_posix_memalign(void** block, size_t alignment, size_t size) {
  *block = own.aligned_alloc(alignment, size);
  return *block ? 0 : ENOMEM;
}

static void* replaced_valloc(size_t size) { return own.aligned_alloc(4096, size); }
static void* replaced_pvalloc(size_t size) { return own.aligned_alloc(4096, (size + 4095) & ~(size_t)4095); }
static void replaced_free(void* block) { (void)block; }

struct calls completed_calls(uint32_t replaced) {
  own = process_calls();
  const struct calls stand_ins = {own.malloc,
                                  replaced_free,
                                  replaced_calloc,
                                  replaced_realloc,
                                  replaced_reallocarray,
                                  replaced_aligned_alloc,
                                  replaced_posix_memalign,
                                  replaced_aligned_alloc,
                                  replaced_valloc,
                                  replaced_pvalloc};
  for (int i = 0; i < call_count; ++i) {
    if (replaced >> i & 1)
      memcpy((char*)&own + i * sizeof(void*), (char*)&stand_ins + i * sizeof(void*), sizeof(void*));
  }
  return own;
}

/* The null allocator. Blocks follow each other at multiples of 16; at the end of the range they begin anew, which takes
 * more bytes asked for in all than any trace so far has. */

static char* range_begin;
static char* range_end;
static char* next_block;

int reserve_null_range(void) {
  for (size_t bytes = (size_t)32 << 40; bytes >= (size_t)1 << 30; bytes /= 2) {
    void* range = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) continue;
    next_block = range_begin = range;
    range_end = range_begin + bytes;
    return 0;
  }
  return errno;
}

static void* null_aligned_alloc(size_t alignment, size_t size) {
  uintptr_t mask = alignment > 16 && !(alignment & (alignment - 1)) ? alignment - 1 : 15;
  for (int attempt = 0; attempt < 2; ++attempt) {
    uintptr_t block = ((uintptr_t)next_block + mask) & ~mask;
    if (block < (uintptr_t)range_end && size < (uintptr_t)range_end - block) {
      next_block = (char*)block + (size ? (size + 15) & ~(size_t)15 : 16);
      return (void*)block;
    }
    next_block = range_begin;
  }
  return NULL;
}

static void* null_malloc(size_t size) {
  size_t bytes = size ? (size + 15) & ~(size_t)15 : 16;
  if (bytes >= (size_t)(range_end - next_block) || bytes < size) return null_aligned_alloc(16, size);
  char* block = next_block;
  next_block += bytes;
  return block;
}

static void null_free(void* block) { (void)block; }

static void* null_calloc(size_t count, size_t size) {
  size_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? NULL : null_malloc(bytes);
}

static void* null_realloc(void* old, size_t size) {
  (void)old;
  return null_malloc(size);
}

static void* null_reallocarray(void* old, size_t count, size_t size) {
  (void)old;
  return null_calloc(count, size);
}

static int null_posix_memalign(void** block, size_t alignment, size_t size) {
  *block = null_aligned_alloc(alignment, size);
  return *block ? 0 : ENOMEM;
}

static void* null_valloc(size_t size) { return null_aligned_alloc(4096, size); }
static void* null_pvalloc(size_t size) { return null_aligned_alloc(4096, (size + 4095) & ~(size_t)4095); }

struct calls null_calls(void) {
  return (struct calls){null_malloc,        null_free,           null_calloc,        null_realloc, null_reallocarray,
                        null_aligned_alloc, null_posix_memalign, null_aligned_alloc, null_valloc,  null_pvalloc};
}
