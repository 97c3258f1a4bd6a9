/* A small allocator that keeps every promise, and with FAULT_... breaks one. For tests of --verify.
 *
 * Blocks are taken from a reserved range, one after the other, each after a header with its size. No memory is used
 * again. The size alone decides which block is broken, so that a test knows the event. */
#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum { header_bytes = 16, odd_size = 333 };

#ifdef FAULT_misaligned
enum { misaligned = 1 };
#else
enum { misaligned = 0 };
#endif

static char* next;
static char* end;
static char* last_block;

static size_t* size_of(void* block) { return (size_t*)(void*)((char*)block - header_bytes); }

#ifdef FAULT_starts
__attribute__((constructor)) static void start(void) {
  for (;;) pause();
}
#endif

static int reserve(void) {
  const size_t bytes = (size_t)1 << 36;
  void* range = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return 0;
  next = range;
  end = next + bytes;
  return 1;
}

static void* fail(void) {
#ifdef FAULT_keeps_errno
  return NULL;
#endif
  errno = ENOMEM;
  return NULL;
}

static void* cut(size_t alignment, size_t size) {
  if (!next && !reserve()) return NULL;
#ifdef FAULT_impossible
  if (size > PTRDIFF_MAX) size = 1;
#endif
#ifdef FAULT_hangs
  while (size > PTRDIFF_MAX) pause();
#endif
#ifdef FAULT_overlap
  if (size == odd_size && last_block) return last_block + 16;
#endif
#ifdef FAULT_twice
  if (size == odd_size && last_block) {
    if (*size_of(last_block) < size) *size_of(last_block) = size;
    next = last_block + ((*size_of(last_block) + 15) & ~(size_t)15);
    return last_block;
  }
#endif
#ifdef FAULT_empty
  static alignas(16) size_t empty[header_bytes / sizeof(size_t) + 1]; /* a header, and the block of each malloc(0) */
  if (size == 0) return (char*)empty + header_bytes;
#endif
#ifdef FAULT_refuses
  if (size == odd_size) return fail();
#endif
  if (size > (size_t)1 << 35) return fail();
  uintptr_t block = ((uintptr_t)next + header_bytes + alignment - 1) & ~(alignment - 1);
#ifdef FAULT_misaligned_by_size
  if (size == odd_size) block += 8;
#endif
  if (block + size > (uintptr_t)end) return fail();
  next = (char*)((block + size + 15) & ~(uintptr_t)15);
  last_block = (char*)block;
#if defined(FAULT_not_zero)
  memset(last_block, 0xaa, size);
#endif
#ifdef FAULT_usable
  *size_of(last_block) = size == odd_size ? size - 1 : size;
#elif defined(FAULT_usable_all)
  *size_of(last_block) = size == odd_size ? SIZE_MAX : size;
#elif defined(FAULT_usable_other)
  *size_of(last_block) = size == odd_size ? size + 600 : size;
#elif defined(FAULT_usable_aligned)
  *size_of(last_block) = alignment > 16 ? size + alignment : size;
#else
  *size_of(last_block) = size;
#endif
  return last_block;
}

EXPORTED void* malloc(size_t size) { return cut(16, size); }
EXPORTED void* aligned_alloc(size_t alignment, size_t size) {
  return cut(misaligned || alignment < 16 ? 16 : alignment, size);
}
EXPORTED void* memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
EXPORTED void* valloc(size_t size) { return aligned_alloc(4096, size); }
EXPORTED void* pvalloc(size_t size) {
#ifndef FAULT_rounds
  if (size > SIZE_MAX - 4095) return fail();
#endif
  return aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
}
EXPORTED size_t malloc_usable_size(void* block) { return block ? *size_of(block) : 0; }

EXPORTED int posix_memalign(void** block, size_t alignment, size_t size) {
#ifdef FAULT_error
  if (alignment & (alignment - 1) || alignment < sizeof(void*)) return ENOMEM;
#elif defined(FAULT_any_alignment)
  if (alignment & (alignment - 1) && alignment > 4096) return EINVAL;
#else
  if (alignment & (alignment - 1) || alignment < sizeof(void*)) return EINVAL;
#endif
  void* const made = aligned_alloc(alignment, size);
#ifdef FAULT_pointer
  *block = NULL;
#endif
  if (!made) return ENOMEM;
  *block = made;
  return 0;
}

EXPORTED void free(void* block) {
  (void)block;
#ifdef FAULT_contents
  /* A link of a list of free blocks, written to where a block that is live begins. */
  if (block && *size_of(block) == odd_size) memcpy(last_block, &block, sizeof block);
#endif
}

EXPORTED void* calloc(size_t count, size_t size) {
  size_t bytes = count * size;
#ifndef FAULT_product
  if (__builtin_mul_overflow(count, size, &bytes)) return fail();
#endif
  void* const block = malloc(bytes);
#ifdef FAULT_not_zero
  return block && bytes != odd_size ? memset(block, 0, bytes) : block;
#endif
  return block;
}

EXPORTED void* realloc(void* old, size_t size) {
#ifdef FAULT_lost
  if (old && size > (size_t)1 << 35) memset(old, 0, 1);
#endif
  char* const block = malloc(size);
  if (!block || !old) return block;
  size_t kept = *size_of(old) < size ? *size_of(old) : size;
#ifdef FAULT_moved
  if (size == odd_size) kept /= 2;
#endif
  return memcpy(block, old, kept);
}

EXPORTED void* reallocarray(void* old, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return fail();
#ifdef FAULT_narrow
  bytes = (unsigned)bytes;
#endif
  return realloc(old, bytes);
}
