/* The calls that an allocator has to answer, and which of the worker's own stand in where it does not. */
#pragma once

#include <stddef.h>
#include <stdint.h>

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

enum { call_count = 10 };

/* "malloc", "free", ..., in the order of the struct. */
extern const char* const call_names[call_count];

/* What the process's names lead to: libc's, or those of what is preloaded. */
struct calls process_calls(void);

/* Those of the library under test (target.h), where bit i of `replaced` makes call i of what the library does have: a
 * library of malloc and free alone must not be mixed with libc's calloc. Alignment is not honoured then unless there is
 * a posix_memalign, realloc copies nothing, and a free that is missing does nothing. */
struct calls completed_calls(uint32_t replaced);

/* The null allocator: distinct addresses of a reserved range that nobody touches. Returns an errno, or 0. */
int reserve_null_range(void);
struct calls null_calls(void);

/* The addresses of the ten, for dladdr. */
void call_addresses(const struct calls* calls, const void* addresses[call_count]);
