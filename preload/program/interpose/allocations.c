// The functions that the program calls in place of malloc(3)'s. Each calls the next library's (real.h) and records the
// event. Cost: bench/tracer_cost.
//
// Promised: events are complete, with static initialisers before ours and exit handlers after ours, however the process
// ends. The program's results, errno, output, exit status and children stay as they are. Standard error gets one line
// at most, about a problem; the program then goes on untraced.
#include "preload/program/interpose/interpose.h"

#include <errno.h>
#include <string.h>

enum { operator_bytes_max = 512, operator_stack_max = 16384 };

// Where malloc fails inside operator new, operator new calls the new_handler, which may allocate, free, or throw, or it
// throws bad_alloc itself. We cannot see an exception pass: a landing pad would need the C++ runtime. So the failure is
// recorded here, as that of operator new, and the guard is lifted. The new_handler's calls are then the program's own
// again, and no guard stays set if it throws.
static void note_failure(const void* caller) {
  struct Thread* self = &thread_self;
  if (!self->guard || !kind_is_operator_new(self->guard->kind)) return;
  self->retry = *self->guard;
  self->retry_caller = caller;
  self->guard = NULL;
  record_new(&self->retry, NULL, tracer_state == tracer_ready_with_stacks ? self->retry.stack_frame : NULL);
}

// After the new_handler, operator new calls malloc again. This call comes from the same place, or near it, where the
// compiler has made two calls of the loop's one. It is recorded as operator new. Returns false for another call.
static __attribute__((noinline)) bool is_retry(void* block, const void* caller, const void* stack_frame) {
  struct Thread* self = &thread_self;
  uintptr_t distance = (uintptr_t)caller - (uintptr_t)self->retry_caller + operator_bytes_max / 2;
  if (distance > operator_bytes_max) return false;
  // operator new has called this function.
  const void* frame = stack_frame ? self->retry.stack_frame : NULL;
  if (frame && (uintptr_t)frame - (uintptr_t)stack_frame > operator_stack_max) frame = stack_frame;
  record_new(&self->retry, block, frame);
  return true;
}

// Calls from inside of an interposed function, to return to `caller`. The tracer's own are served from the arena: their
// blocks are not the program's.
static __attribute__((noinline)) void* malloc_inside(size_t size, const void* caller) {
  const struct Guard* guard = thread_self.guard;
  if (__builtin_expect(guard && guard->kind == guard_own_use, 0)) return arena_allocate(16, size);
  void* block = real.malloc(size);
  if (!block) note_failure(caller);
  return block;
}

static __attribute__((noinline)) void* aligned_inside(size_t alignment, size_t size, const void* caller) {
  void* block = real.aligned_alloc(alignment, size);
  if (!block) note_failure(caller);
  return block;
}

// Calls the real function, guarded, and records its result. A call from inside of another function is only passed on.
#define ALLOCATE(call, kind_of_call, ...)                                                            \
  do {                                                                                               \
    struct Guard guard;                                                                              \
    if (!guard_enter(&guard, kind_of_call)) return call;                                             \
    void* block = call;                                                                              \
    guard_leave(&guard);                                                                             \
    if (recording_is_on())                                                                           \
      record_long(&(struct Call){.kind = kind_of_call, .address = block, __VA_ARGS__}, stack_frame); \
    return block;                                                                                    \
  } while (0)

static void* unavailable(void) {
  errno = ENOMEM;
  return NULL;
}

INTERPOSED(void*, malloc, (size_t size), (size)) {
  if (!tracer_is_ready()) return arena_allocate(16, size);
  struct Guard guard;
  if (!guard_enter(&guard, kind_malloc)) return malloc_inside(size, __builtin_return_address(0));
  void* block = real.malloc(size);
  guard_leave(&guard);
  const void* caller = __builtin_return_address(0);
  if (__builtin_expect(thread_self.retry_caller != NULL, 0) && is_retry(block, caller, stack_frame)) return block;
  if (recording_is_on()) record(kind_malloc, block, size, stack_frame);
  return block;
}

INTERPOSED(void*, calloc, (size_t count, size_t size), (count, size)) {
  size_t bytes;
  if (!tracer_is_ready())
    return __builtin_mul_overflow(count, size, &bytes) ? unavailable() : arena_allocate(16, bytes);
  ALLOCATE(real.calloc(count, size), kind_calloc, .size = size, .has_count = true, .count = count);
}

INTERPOSED(void*, aligned_alloc, (size_t alignment, size_t size), (alignment, size)) {
  if (!tracer_is_ready()) return arena_allocate(alignment, size);
  if (!real.aligned_alloc) return unavailable();
  struct Guard guard;
  if (!guard_enter(&guard, kind_aligned_alloc)) return aligned_inside(alignment, size, __builtin_return_address(0));
  void* block = real.aligned_alloc(alignment, size);
  guard_leave(&guard);
  const void* caller = __builtin_return_address(0);
  if (__builtin_expect(thread_self.retry_caller != NULL, 0) && is_retry(block, caller, stack_frame)) return block;
  if (recording_is_on()) record_aligned(kind_aligned_alloc, block, size, alignment, stack_frame);
  return block;
}

INTERPOSED(void*, memalign, (size_t alignment, size_t size), (alignment, size)) {
  if (!tracer_is_ready()) return arena_allocate(alignment, size);
  if (!real.memalign) return unavailable();
  ALLOCATE(real.memalign(alignment, size), kind_memalign, .size = size, .alignment = alignment);
}

INTERPOSED(int, posix_memalign, (void** result, size_t alignment, size_t size), (result, alignment, size)) {
  if (!tracer_is_ready()) return (*result = arena_allocate(alignment, size)) ? 0 : ENOMEM;
  if (!real.posix_memalign) return ENOMEM;
  struct Guard guard;
  if (!guard_enter(&guard, kind_posix_memalign)) return real.posix_memalign(result, alignment, size);
  int status = real.posix_memalign(result, alignment, size);
  guard_leave(&guard);
  if (recording_is_on()) record_aligned(kind_posix_memalign, status ? NULL : *result, size, alignment, stack_frame);
  return status;
}

INTERPOSED(void*, valloc, (size_t size), (size)) {
  if (!tracer_is_ready()) return arena_allocate(4096, size);
  if (!real.valloc) return unavailable();
  ALLOCATE(real.valloc(size), kind_valloc, .size = size);
}

INTERPOSED(void*, pvalloc, (size_t size), (size)) {
  if (!tracer_is_ready()) return arena_allocate(4096, (size + 4095) & ~(size_t)4095);
  if (!real.pvalloc) return unavailable();
  ALLOCATE(real.pvalloc(size), kind_pvalloc, .size = size);
}

// A block of the arena cannot grow. The trace has never seen it: there its successor is a new block.
static __attribute__((noinline)) void* move_from_arena(void* block, size_t size, const void* stack_frame) {
  void* moved = malloc_traced(stack_frame, size);
  const size_t old = block ? arena_size(block) : 0;
  if (moved && block) memcpy(moved, block, old < size ? old : size);
  return moved;
}

// Calls the real function, guarded, for `block`, and records it twice: before it, the old block; after it, the result.
// In between, another thread may get the old block's address.
#define REALLOCATE(call, kind_of_call, record_result)     \
  do {                                                    \
    struct Guard guard;                                   \
    struct LargeBlock given = {0};                        \
    if (!guard_enter(&guard, kind_of_call)) return call;  \
    if (block && recording_is_on()) {                     \
      thread_self.has_called_realloc = true;              \
      if (__builtin_expect(large_block_may_be(block), 0)) \
        given = record_long_pages_begin(block);           \
      else                                                \
        record(record_realloc_begin, block, 0, NULL);     \
    }                                                     \
    void* result = call;                                  \
    guard_leave(&guard);                                  \
    const uint32_t old = block ? slot_has_old_block : 0;  \
    if (recording_is_on()) record_result;                 \
    return result;                                        \
  } while (0)

// The result of a realloc that was given a large block.
static __attribute__((noinline)) void record_result_of_large(const struct LargeBlock* given, void* result, size_t size,
                                                             const void* stack_frame) {
  record_long(
      &(struct Call){
          .kind = kind_realloc, .flags = slot_has_old_block, .address = result, .size = size, .given = given},
      stack_frame);
}

static inline void record_realloc(const struct LargeBlock* given, uint32_t old, void* result, size_t size,
                                  const void* stack_frame) {
  if (__builtin_expect(given->address != 0, 0))
    record_result_of_large(given, result, size, stack_frame);
  else
    record(kind_realloc | old, result, size, stack_frame);
}

INTERPOSED(void*, realloc, (void* block, size_t size), (block, size)) {
  if (!tracer_is_ready() || arena_owns(block)) return move_from_arena(block, size, stack_frame);
  REALLOCATE(real.realloc(block, size), kind_realloc, record_realloc(&given, old, result, size, stack_frame));
}

INTERPOSED(void*, reallocarray, (void* block, size_t count, size_t size), (block, count, size)) {
  size_t bytes;
  if (!tracer_is_ready() || arena_owns(block) || !real.reallocarray) {
    return __builtin_mul_overflow(count, size, &bytes) ? unavailable() : realloc_traced(stack_frame, block, bytes);
  }
  struct Call made = {.kind = kind_reallocarray, .size = size, .has_count = true, .count = count};
  REALLOCATE(real.reallocarray(block, count, size), kind_reallocarray,
             (made.flags = old, made.address = result, made.given = given.address ? &given : NULL,
              record_long(&made, stack_frame)));
}

INTERPOSED_VOID(free, (void* block), (block)) {
  if (!tracer_is_ready() || arena_owns(block)) return;
  // Not in a forked child that has not begun: the modules are its parent's.
  if (stack_frame && recording_generation() != 0) unwind_before_free(block, __builtin_return_address(0));
  struct Guard guard;
  if (guard_enter(&guard, kind_free)) {
    if (recording_is_on()) record(kind_free, block, 0, stack_frame);
    real.free(block);
    guard_leave(&guard);
  } else {
    real.free(block);
  }
}

INTERPOSED_VOID(free_sized, (void* block, size_t size), (block, size)) {
  if (!tracer_is_ready() || arena_owns(block)) return;
  FREE(real.free_sized, kind_free_sized, size, 0, block, size);
}

INTERPOSED_VOID(free_aligned_sized, (void* block, size_t alignment, size_t size), (block, alignment, size)) {
  if (!tracer_is_ready() || arena_owns(block)) return;
  FREE(real.free_aligned_sized, kind_free_aligned_sized, size, alignment, block, alignment, size);
}

// Not among the functions of hooks.c: no module that was loaded before the tracer has blocks of the arena.
EXPORT size_t malloc_usable_size(void* block) {
  if (!tracer_is_ready() || arena_owns(block)) return block ? arena_size(block) : 0;
  return real.malloc_usable_size ? real.malloc_usable_size(block) : 0;
}
