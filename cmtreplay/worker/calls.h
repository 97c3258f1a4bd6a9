/* The calls of an allocator as a table of functions, and the tables that the worker makes itself: stand-ins for missing
 * calls, the null allocator, and counting of usable sizes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cmtreplay/protocol.h"

struct calls {
  void* (*malloc)(size_t);
  void (*free)(void*);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*reallocarray)(void*, size_t, size_t);
  void* (*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
  void (*free_sized)(void*, size_t size, size_t alignment); /* alignment 1: none was stated */
};

/* The calls of the library under test (target.h). Bit i of `replaced` says that the library lacks call i, which is then
 * emulated by those that it has: a library of malloc and free alone must not be mixed with libc's calloc. Emulated,
 * alignment is not kept unless there is a posix_memalign, realloc copies nothing, and free does nothing. */
struct calls completed_calls(uint32_t replaced);

/* The null allocator returns distinct addresses of a reserved range that is never touched. Returns an errno, or 0. */
int reserve_null_range(void);
struct calls null_calls(void);

/* Wraps the calls so that each adds the block's usable size to `total` or takes it off. Returns 0, and changes nothing,
 * where the library does not tell usable sizes. */
int count_usable(struct calls* calls, uint64_t* total);
