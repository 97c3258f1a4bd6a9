/// The functions behind ours, in the loader's search order: another preloaded allocator's come before libc's. And the
/// arena that serves malloc while they are looked for.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/program/kernel.h"

struct Real {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*reallocarray)(void*, size_t, size_t);
  void (*free)(void*);
  void (*free_sized)(void*, size_t);                  ///< NULL if there is none
  void (*free_aligned_sized)(void*, size_t, size_t);  ///< NULL if there is none
  void* (*aligned_alloc)(size_t, size_t);
  void* (*memalign)(size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
  size_t (*usable_size)(void*);  ///< malloc_usable_size; NULL if there is none
};
extern struct Real real HIDDEN;

/// Finds them all. Ends the process with a line where one is missing that every libc has, or where the program is built
/// with a sanitizer.
void real_find_all(void);

/// The function `name` behind ours. Ends the process with a line if there is none.
void* real_must(const char* name);

/// Whether code belongs to the library of the real malloc.
bool is_allocator_code(const void* code);

/// Serves the calls of malloc that dlsym itself may make while it looks for the real functions: 64 KiB, never given
/// back. The blocks are no events, and are recognised wherever they come back.
enum { arena_bytes = 64 * 1024 };
extern char arena_memory[arena_bytes] HIDDEN;

/// Zeroed; NULL with ENOMEM when the arena is used up.
void* arena_allocate(size_t alignment, size_t size);
/// The size that was asked for.
size_t arena_size(const void* block);
static inline bool arena_owns(const void* block) { return (uintptr_t)block - (uintptr_t)arena_memory < arena_bytes; }
