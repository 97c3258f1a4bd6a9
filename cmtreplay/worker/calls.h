/* The calls that an allocator has to answer, and which of the worker's own stand in where it does not. */
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

/* Those of the library under test (target.h), where bit i of `replaced` makes call i of what the library does have: a
 * library of malloc and free alone must not be mixed with libc's calloc. Alignment is not honoured then unless there is
 * a posix_memalign, realloc copies nothing, and a free that is missing does nothing. */
struct calls completed_calls(uint32_t replaced);

/* The null allocator: distinct addresses of a reserved range that nobody touches. Returns an errno, or 0. */
int reserve_null_range(void);
struct calls null_calls(void);

/* Wraps the calls so that each adds the block's usable size to `total` or takes it off. Returns 0, and changes nothing,
 * where the library does not tell usable sizes. */
int count_usable(struct calls* calls, uint64_t* total);
