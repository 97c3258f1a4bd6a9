// libcmttrace.so: LD_PRELOAD=libcmttrace.so app records every call of malloc(3)'s functions and of operator new and
// delete that app and its libraries make, as text (format-spec/text.md) in app.PID.trace. man/libcmttrace.1 has the
// environment variables.
//
// Promised: each free is paired with its own malloc and no address lives twice, whatever the threads do
// (collector/order.h). Events are complete, with static initialisers before ours and exit handlers after ours, however
// the process ends. Each forked child writes a file of its own. The program's results, errno, output, exit status and
// children are what they are without us; of standard error at most one line is used, for a problem, after which the
// program goes on untraced.
//
// Not seen: static and setuid programs (the loader ignores us), memory managers inside a program, operator new that a
// program defines itself (its calls of malloc are seen). A program built with a sanitizer is refused with one line, and
// ends.
//
// This file and interpose_new.c hold the functions that the program calls in place of malloc(3)'s. Each one hands
// through to the next library's (real.c), so that other preloaded allocators are traced as well, and records what came
// of it: a free before the real call, an allocation after it (preload/protocol.h). Cost: see bench/tracer_cost.
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "preload/program/arena.h"
#include "preload/program/interpose.h"
#include "preload/program/real.h"
#include "preload/program/record.h"

// Calls the real function, guarded, and records its result; what we are called from inside is handed through.
#define ALLOCATE(call, kind_of_call, ...)                                                                   \
  do {                                                                                                      \
    struct Guard guard;                                                                                     \
    if (!guard_enter(&guard, kind_of_call)) return call;                                                    \
    void* block = call;                                                                                     \
    guard_leave();                                                                                          \
    if (record_allowed()) record_long(&(struct Call){.kind = kind_of_call, .address = block, __VA_ARGS__}); \
    return block;                                                                                           \
  } while (0)

static void* unavailable(void) {
  errno = ENOMEM;
  return NULL;
}

EXPORT void* malloc(size_t size) {
  if (!real_ready()) return arena_allocate(16, size);
  struct Guard guard;
  if (!guard_enter(&guard, kind_malloc)) return malloc_inside(size, __builtin_return_address(0));
  void* block = real.malloc(size);
  guard_leave();
  const void* caller = __builtin_return_address(0);
  if (__builtin_expect(thread_self.retry_caller != NULL, 0) && malloc_was_retried(block, caller)) return block;
  if (record_allowed()) record(kind_malloc, block, size);
  return block;
}

EXPORT void* calloc(size_t count, size_t size) {
  size_t bytes;
  if (!real_ready()) return __builtin_mul_overflow(count, size, &bytes) ? unavailable() : arena_allocate(16, bytes);
  ALLOCATE(real.calloc(count, size), kind_calloc, .size = size, .has_count = true, .count = count);
}

EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  if (!real_ready()) return arena_allocate(alignment, size);
  if (!real.aligned_alloc) return unavailable();
  struct Guard guard;
  if (!guard_enter(&guard, kind_aligned_alloc)) return aligned_inside(alignment, size, __builtin_return_address(0));
  void* block = real.aligned_alloc(alignment, size);
  guard_leave();
  const void* caller = __builtin_return_address(0);
  if (__builtin_expect(thread_self.retry_caller != NULL, 0) && malloc_was_retried(block, caller)) return block;
  if (record_allowed()) {
    record_long(&(struct Call){.kind = kind_aligned_alloc, .address = block, .size = size, .alignment = alignment});
  }
  return block;
}

EXPORT void* memalign(size_t alignment, size_t size) {
  if (!real_ready()) return arena_allocate(alignment, size);
  if (!real.memalign) return unavailable();
  ALLOCATE(real.memalign(alignment, size), kind_memalign, .size = size, .alignment = alignment);
}

EXPORT int posix_memalign(void** result, size_t alignment, size_t size) {
  if (!real_ready()) return (*result = arena_allocate(alignment, size)) ? 0 : ENOMEM;
  if (!real.posix_memalign) return ENOMEM;
  struct Guard guard;
  if (!guard_enter(&guard, kind_posix_memalign)) return real.posix_memalign(result, alignment, size);
  int status = real.posix_memalign(result, alignment, size);
  guard_leave();
  if (record_allowed()) {
    record_long(&(struct Call){
        .kind = kind_posix_memalign, .address = status ? NULL : *result, .size = size, .alignment = alignment});
  }
  return status;
}

EXPORT void* valloc(size_t size) {
  if (!real_ready()) return arena_allocate(4096, size);
  if (!real.valloc) return unavailable();
  ALLOCATE(real.valloc(size), kind_valloc, .size = size);
}

EXPORT void* pvalloc(size_t size) {
  if (!real_ready()) return arena_allocate(4096, (size + 4095) & ~(size_t)4095);
  if (!real.pvalloc) return unavailable();
  ALLOCATE(real.pvalloc(size), kind_pvalloc, .size = size);
}

// A block of the arena cannot grow where it is. To the trace, which never saw it, its successor is a new block.
static void* move_from_arena(void* block, size_t size) {
  size_t old = arena_size(block);
  void* moved = malloc(size);
  if (moved) memcpy(moved, block, old < size ? old : size);
  return moved;
}

// A realloc is recorded twice: that the old block is given away, before; what came of it, after. In between, others
// may get the old block's address.
EXPORT void* realloc(void* block, size_t size) {
  if (!real_ready() || arena_owns(block)) return block ? move_from_arena(block, size) : malloc(size);
  struct Guard guard;
  if (!guard_enter(&guard, kind_realloc)) return real.realloc(block, size);
  bool given = block && record_allowed();
  if (given) record(record_realloc_begin, block, 0);
  void* result = real.realloc(block, size);
  guard_leave();
  if (record_allowed()) record(kind_realloc | (block ? slot_has_old_block : 0), result, size);
  return result;
}

EXPORT void* reallocarray(void* block, size_t count, size_t size) {
  size_t bytes;
  if (!real_ready() || arena_owns(block) || !real.reallocarray) {
    return __builtin_mul_overflow(count, size, &bytes) ? unavailable() : realloc(block, bytes);
  }
  struct Guard guard;
  if (!guard_enter(&guard, kind_reallocarray)) return real.reallocarray(block, count, size);
  bool given = block && record_allowed();
  if (given) record(record_realloc_begin, block, 0);
  void* result = real.reallocarray(block, count, size);
  guard_leave();
  if (record_allowed()) {
    record_long(&(struct Call){.kind = kind_reallocarray,
                               .flags = block ? slot_has_old_block : 0,
                               .address = result,
                               .size = size,
                               .has_count = true,
                               .count = count});
  }
  return result;
}

EXPORT void free(void* block) {
  if (!real_ready() || arena_owns(block)) return;
  struct Guard guard;
  if (guard_enter(&guard, kind_free)) {
    if (record_allowed()) record(kind_free, block, 0);
    real.free(block);
    guard_leave();
  } else if (block) {  // of NULL by dlerror, on our behalf, the allocator need not hear
    real.free(block);
  }
}

EXPORT void free_sized(void* block, size_t size) {
  if (!real_ready() || arena_owns(block)) return;
  struct Guard guard;
  bool outermost = guard_enter(&guard, kind_free_sized);
  if (outermost && record_allowed()) record(kind_free_sized, block, size);
  if (real.free_sized)
    real.free_sized(block, size);
  else
    real.free(block);
  if (outermost) guard_leave();
}

EXPORT void free_aligned_sized(void* block, size_t alignment, size_t size) {
  if (!real_ready() || arena_owns(block)) return;
  struct Guard guard;
  bool outermost = guard_enter(&guard, kind_free_aligned_sized);
  if (outermost && record_allowed()) {
    record_long(
        &(struct Call){.kind = kind_free_aligned_sized, .address = block, .size = size, .alignment = alignment});
  }
  if (real.free_aligned_sized)
    real.free_aligned_sized(block, alignment, size);
  else
    real.free(block);
  if (outermost) guard_leave();
}

EXPORT size_t malloc_usable_size(void* block) {
  if (!real_ready() || arena_owns(block)) return block ? arena_size(block) : 0;
  return real.malloc_usable_size ? real.malloc_usable_size(block) : 0;
}
