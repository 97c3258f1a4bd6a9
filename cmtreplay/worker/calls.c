/* The worker always calls through a table of functions. That costs what a call through the procedure linkage table
 * costs any program, and the null allocator, an allocator that lacks calls and an ordinary one run through the same
 * loop, so that their times can be compared. */
#define _GNU_SOURCE
#include "cmtreplay/worker/calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cmtreplay/worker/target.h"

/* Stand-ins for missing calls. They use malloc and free, and posix_memalign where the library has it. */

static struct calls own;

static void* replaced_calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  void* block = own.malloc(bytes);
  return block ? memset(block, 0, bytes) : NULL;
}

/* The size of the old block is not known, so nothing is copied. The replay needs no contents, and touches the block. */
static void* replaced_realloc(void* old, size_t size) {
  void* block = own.malloc(size);
  if (block) own.free(old);
  return block;
}

static void* replaced_reallocarray(void* old, size_t count, size_t size) {
  size_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? NULL : own.realloc(old, bytes);
}

static int has_posix_memalign;

static void* replaced_aligned_alloc(size_t alignment, size_t size) {
  if (!has_posix_memalign) return own.malloc(size);
  void* block = NULL;
  const size_t least = sizeof(void*);
  return own.posix_memalign(&block, alignment < least ? least : alignment, size) == 0 ? block : NULL;
}

static int replaced_posix_memalign(void** block, size_t alignment, size_t size) {
  *block = own.aligned_alloc(alignment, size);
  return *block ? 0 : ENOMEM;
}

static void* replaced_valloc(size_t size) { return own.aligned_alloc(4096, size); }
static void* replaced_pvalloc(size_t size) { return own.aligned_alloc(4096, (size + 4095) & ~(size_t)4095); }
static void replaced_free(void* block) { (void)block; }

static void unsized_free(void* block, size_t size, size_t alignment) {
  (void)size;
  (void)alignment;
  own.free(block);
}

struct calls completed_calls(uint32_t replaced) {
  own = target_calls();
  has_posix_memalign = !(replaced >> 6 & 1);
  const struct calls stand_ins = {own.malloc,
                                  replaced_free,
                                  replaced_calloc,
                                  replaced_realloc,
                                  replaced_reallocarray,
                                  replaced_aligned_alloc,
                                  replaced_posix_memalign,
                                  replaced_aligned_alloc,
                                  replaced_valloc,
                                  replaced_pvalloc,
                                  unsized_free};
  for (int i = 0; i < call_count; ++i) {
    if (replaced >> i & 1)
      memcpy((char*)&own + i * sizeof(void*), (char*)&stand_ins + i * sizeof(void*), sizeof(void*));
  }
  own.free_sized = replaced >> 1 & 1 ? NULL : target_sized_free();
  if (!own.free_sized) own.free_sized = unsized_free;
  return own;
}

/* The null allocator. Blocks follow each other at multiples of 16. Threads take extents of a reserved range in turn,
 * and start again at its beginning after 32 TiB, which is more than any trace so far has asked for in all. */

static const size_t extent_bytes = (size_t)1 << 30;
static char* range_begin;
static uint64_t extents, extents_taken;

static __thread char* next_block;
static __thread char* extent_end;

int reserve_null_range(void) {
  for (size_t bytes = (size_t)32 << 40; bytes >= extent_bytes; bytes /= 2) {
    void* range = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) continue;
    range_begin = range;
    extents = bytes / extent_bytes;
    return 0;
  }
  return errno;
}

/* Takes contiguous extents for a block of so many bytes. */
static int take_extents(size_t bytes) {
  const uint64_t wanted = bytes / extent_bytes + 1;
  if (wanted > extents) return 0;
  uint64_t first = __atomic_fetch_add(&extents_taken, wanted, __ATOMIC_RELAXED);
  if (first + wanted > extents) {
    first = 0;
    __atomic_store_n(&extents_taken, wanted, __ATOMIC_RELAXED);
  }
  next_block = range_begin + first * extent_bytes;
  extent_end = next_block + wanted * extent_bytes;
  return 1;
}

static void* null_aligned_alloc(size_t alignment, size_t size) {
  const size_t mask = alignment > 16 && !(alignment & (alignment - 1)) ? alignment - 1 : 15;
  const size_t bytes = size ? (size + 15) & ~(size_t)15 : 16;
  if (bytes < size || bytes + mask < bytes) return NULL;
  if (bytes + mask > (size_t)(extent_end - next_block) && !take_extents(bytes + mask)) return NULL;
  char* const block = (char*)(((uintptr_t)next_block + mask) & ~(uintptr_t)mask);
  next_block = block + bytes;
  return block;
}

static void* null_malloc(size_t size) {
  const size_t bytes = size ? (size + 15) & ~(size_t)15 : 16;
  if (bytes > (size_t)(extent_end - next_block) || bytes < size) return null_aligned_alloc(16, size);
  char* const block = next_block;
  next_block += bytes;
  return block;
}

static void null_free(void* block) { (void)block; }

static void null_free_sized(void* block, size_t size, size_t alignment) {
  (void)block;
  (void)size;
  (void)alignment;
}

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
  return (struct calls){null_malloc,       null_free,          null_calloc,         null_realloc,
                        null_reallocarray, null_aligned_alloc, null_posix_memalign, null_aligned_alloc,
                        null_valloc,       null_pvalloc,       null_free_sized};
}

/* Usable sizes. In a memory run each call asks the allocator how many bytes of the block may be used: those beyond the
 * requested size are slop. It asks again when the block is freed, so that nothing has to be remembered. */

static struct calls uncounted;
static usable_size_call* usable_size;
static uint64_t* total;

static void* count_new(void* block) {
  if (block) __atomic_fetch_add(total, usable_size(block), __ATOMIC_RELAXED);
  return block;
}

static uint64_t discount_old(void* block) {
  const uint64_t bytes = block ? usable_size(block) : 0;
  __atomic_fetch_sub(total, bytes, __ATOMIC_RELAXED);
  return bytes;
}

static void* counted_malloc(size_t size) { return count_new(uncounted.malloc(size)); }
static void* counted_calloc(size_t count, size_t size) { return count_new(uncounted.calloc(count, size)); }
static void* counted_aligned_alloc(size_t alignment, size_t size) {
  return count_new(uncounted.aligned_alloc(alignment, size));
}
static void* counted_memalign(size_t alignment, size_t size) { return count_new(uncounted.memalign(alignment, size)); }
static void* counted_valloc(size_t size) { return count_new(uncounted.valloc(size)); }
static void* counted_pvalloc(size_t size) { return count_new(uncounted.pvalloc(size)); }

static void counted_free(void* block) {
  discount_old(block);
  uncounted.free(block);
}

static void counted_free_sized(void* block, size_t size, size_t alignment) {
  discount_old(block);
  uncounted.free_sized(block, size, alignment);
}

/* A block whose realloc was refused still counts. */
static void* count_resized(void* block, uint64_t before, size_t size) {
  if (!block && size) __atomic_fetch_add(total, before, __ATOMIC_RELAXED);
  return count_new(block);
}

static void* counted_realloc(void* old, size_t size) {
  const uint64_t before = discount_old(old);
  return count_resized(uncounted.realloc(old, size), before, size);
}

static void* counted_reallocarray(void* old, size_t count, size_t size) {
  const uint64_t before = discount_old(old);
  return count_resized(uncounted.reallocarray(old, count, size), before, count && size);
}

static int counted_posix_memalign(void** block, size_t alignment, size_t size) {
  const int error = uncounted.posix_memalign(block, alignment, size);
  if (error == 0) count_new(*block);
  return error;
}

int count_usable(struct calls* calls, uint64_t* sum) {
  usable_size = target_usable_size();
  if (!usable_size) return 0;
  uncounted = *calls;
  total = sum;
  *calls = (struct calls){counted_malloc,       counted_free,          counted_calloc,         counted_realloc,
                          counted_reallocarray, counted_aligned_alloc, counted_posix_memalign, counted_memalign,
                          counted_valloc,       counted_pvalloc,       counted_free_sized};
  return 1;
}
