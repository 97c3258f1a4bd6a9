/// The functions behind ours, in search order: another preloaded allocator's before libc's.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct Real {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*reallocarray)(void*, size_t, size_t);
  void (*free)(void*);
  void (*free_sized)(void*, size_t);                  ///< NULL where there is none
  void (*free_aligned_sized)(void*, size_t, size_t);  ///< NULL where there is none
  void* (*aligned_alloc)(size_t, size_t);
  void* (*memalign)(size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
  size_t (*malloc_usable_size)(void*);
};

extern struct Real real;
extern int real_state;  // 2: found

/// False only while the functions are being looked for: the call came out of dlsym, and the arena serves it.
bool real_find(void);

static inline bool real_ready(void) { return __builtin_expect(real_state == 2, 1) || real_find(); }

/// The function `name` behind ours; ends the process with a line where there is none.
void* real_must(const char* name);
