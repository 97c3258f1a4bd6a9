/* The tables of functions that the worker calls through. A call through a table costs as much as the call through the
 * procedure linkage table that any program makes. The null allocator, an allocator that lacks calls and an ordinary one
 * all run through the same loop, so that their times can be compared. */
#define _GNU_SOURCE
#include "cmtreplay/worker/calls.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Emulation of missing calls. It uses malloc and free, and posix_memalign if the library has it. */

static struct calls own;

static void* replaced_calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  void* block = own.malloc(bytes);
  return block ? memset(block, 0, bytes) : NULL;
}

/* Copies nothing, since the size of the old block is not known. The replay needs no contents, and touches the block. */
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

/* Puts emulated calls into `own`. */
static struct calls complete(uint32_t replaced) {
  has_posix_memalign = !(replaced >> call_posix_memalign & 1);
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
  if (!own.free_sized) own.free_sized = unsized_free;
  return own;
}

struct calls completed_calls(uint32_t replaced) {
  own = target_calls();
  own.free_sized = replaced >> call_free & 1 ? NULL : target_sized_free();
  return complete(replaced);
}

/* The null allocator. Blocks follow each other at multiples of 16. Threads take extents of a reserved range in turn.
 * They start again at its beginning after 32 TiB, which is more than any trace so far has asked for in all. */

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

struct calls null_calls(void) {
  own = (struct calls){.malloc = null_malloc,
                       .calloc = null_calloc,
                       .realloc = null_realloc,
                       .aligned_alloc = null_aligned_alloc,
                       .memalign = null_aligned_alloc,
                       .free_sized = null_free_sized};
  return complete(1 << call_free | 1 << call_reallocarray | 1 << call_posix_memalign | 1 << call_valloc |
                  1 << call_pvalloc);
}

/* Observed calls. */

static struct calls observed;
static const struct call_observer* observer;

static void* observe_new(void* block, struct block_request request) {
  observer->after(block, &(struct live_block){0}, &request);
  return block;
}

static void* observed_malloc(size_t size) {
  return observe_new(observed.malloc(size), (struct block_request){call_malloc, size, 1, 0});
}

static void* observed_calloc(size_t count, size_t size) {
  return observe_new(observed.calloc(count, size), (struct block_request){call_calloc, size, count, 0});
}

static void* observed_aligned_alloc(size_t alignment, size_t size) {
  return observe_new(observed.aligned_alloc(alignment, size),
                     (struct block_request){call_aligned_alloc, size, 1, alignment});
}

static int observed_posix_memalign(void** block, size_t alignment, size_t size) {
  const int error = observed.posix_memalign(block, alignment, size);
  observe_new(error == 0 ? *block : NULL, (struct block_request){call_posix_memalign, size, 1, alignment});
  return error;
}

static void* observed_memalign(size_t alignment, size_t size) {
  return observe_new(observed.memalign(alignment, size), (struct block_request){call_memalign, size, 1, alignment});
}

static void* observed_valloc(size_t size) {
  return observe_new(observed.valloc(size), (struct block_request){call_valloc, size, 1, page_bytes});
}

static void* observed_pvalloc(size_t size) {
  return observe_new(observed.pvalloc(size), (struct block_request){call_pvalloc, size, 1, page_bytes});
}

static void observed_free(void* block) {
  observer->before(block, call_free);
  observed.free(block);
}

static void observed_free_sized(void* block, size_t size, size_t alignment) {
  observer->before(block, call_free);
  observed.free_sized(block, size, alignment);
}

static void* observed_realloc(void* old, size_t size) {
  const struct live_block before = observer->before(old, call_realloc);
  void* const block = observed.realloc(old, size);
  observer->after(block, &before, &(struct block_request){call_realloc, size, 1, 0});
  return block;
}

static void* observed_reallocarray(void* old, size_t count, size_t size) {
  const struct live_block before = observer->before(old, call_reallocarray);
  void* const block = observed.reallocarray(old, count, size);
  observer->after(block, &before, &(struct block_request){call_reallocarray, size, count, 0});
  return block;
}

void observe_calls(struct calls* calls, const struct call_observer* its_observer) {
  observed = *calls;
  observer = its_observer;
  *calls = (struct calls){observed_malloc,       observed_free,          observed_calloc,         observed_realloc,
                          observed_reallocarray, observed_aligned_alloc, observed_posix_memalign, observed_memalign,
                          observed_valloc,       observed_pvalloc,       observed_free_sized};
}

/* Usable sizes. In a memory run each call asks the allocator for the block's usable size: the bytes beyond the
 * requested size are slop. It asks again when the block is freed, so that it need not remember sizes. */

static usable_size_call* usable_size;
static uint64_t* total;

static struct live_block discount_old(void* block, enum call call) {
  (void)call;
  const struct live_block old = {.usable = block ? usable_size(block) : 0};
  __atomic_fetch_sub(total, old.usable, __ATOMIC_RELAXED);
  return old;
}

/* Counts a new block. A block whose realloc was refused counts again. */
static void count_new(void* block, const struct live_block* old, const struct block_request* request) {
  const int refused = !block && request->size && request->count;
  __atomic_fetch_add(total, block ? usable_size(block) : refused ? old->usable : 0, __ATOMIC_RELAXED);
}

int count_usable(struct calls* calls, uint64_t* sum) {
  static const struct call_observer counting = {discount_old, count_new};
  usable_size = target_usable_size();
  if (!usable_size) return 0;
  total = sum;
  observe_calls(calls, &counting);
  return 1;
}
