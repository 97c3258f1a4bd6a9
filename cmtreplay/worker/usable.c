/* In a run for memory each call asks the allocator how much of the block may be used: what that is above the requested
 * size is slop. It asks again when the block goes, so that nothing has to be remembered. */
#include "usable.h"

#include "target.h"

static struct calls below;
static usable_size_call* usable_size;
static uint64_t* total;

static void* came(void* block) {
  if (block) __atomic_fetch_add(total, usable_size(block), __ATOMIC_RELAXED);
  return block;
}

static uint64_t goes(void* block) {
  const uint64_t bytes = block ? usable_size(block) : 0;
  __atomic_fetch_sub(total, bytes, __ATOMIC_RELAXED);
  return bytes;
}

static void* counted_malloc(size_t size) { return came(below.malloc(size)); }
static void* counted_calloc(size_t count, size_t size) { return came(below.calloc(count, size)); }
static void* counted_aligned_alloc(size_t alignment, size_t size) { return came(below.aligned_alloc(alignment, size)); }
static void* counted_memalign(size_t alignment, size_t size) { return came(below.memalign(alignment, size)); }
static void* counted_valloc(size_t size) { return came(below.valloc(size)); }
static void* counted_pvalloc(size_t size) { return came(below.pvalloc(size)); }

static void counted_free(void* block) {
  goes(block);
  below.free(block);
}

static void counted_free_sized(void* block, size_t size, size_t alignment) {
  goes(block);
  below.free_sized(block, size, alignment);
}

/* A block whose realloc was refused stays. */
static void* resized(void* block, uint64_t before, size_t size) {
  if (!block && size) __atomic_fetch_add(total, before, __ATOMIC_RELAXED);
  return came(block);
}

static void* counted_realloc(void* old, size_t size) {
  const uint64_t before = goes(old);
  return resized(below.realloc(old, size), before, size);
}

static void* counted_reallocarray(void* old, size_t count, size_t size) {
  const uint64_t before = goes(old);
  return resized(below.reallocarray(old, count, size), before, count && size);
}

static int counted_posix_memalign(void** block, size_t alignment, size_t size) {
  const int error = below.posix_memalign(block, alignment, size);
  if (error == 0) came(*block);
  return error;
}

int count_usable(struct calls* calls, uint64_t* sum) {
  usable_size = target_usable_size();
  if (!usable_size) return 0;
  below = *calls;
  total = sum;
  *calls = (struct calls){counted_malloc,       counted_free,          counted_calloc,         counted_realloc,
                          counted_reallocarray, counted_aligned_alloc, counted_posix_memalign, counted_memalign,
                          counted_valloc,       counted_pvalloc,       counted_free_sized};
  return 1;
}
