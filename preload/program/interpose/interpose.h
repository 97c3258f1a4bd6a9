/// Shared by the interposed functions: the guard, which makes one event of a call and the calls inside of it. Calls by
/// a signal handler that interrupts it are events of their own.
///
/// The real functions call interposed ones in turn: aligned_alloc calls memalign, operator new calls malloc. Only the
/// outermost call is an event. Its guard, in its frame, is `thread_self.guard` while it runs. A frame that an exception
/// or longjmp has left must not guard for ever: see guard_holds().
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/program/lifecycle.h"
#include "preload/program/real.h"
#include "preload/program/variants.h"

#define EXPORT __attribute__((visibility("default")))

/// Gives a function that is defined in this file a name that no other module can take. For example, ours_malloc is the
/// tracer's own malloc, wherever the loader leads calls of `malloc` (hooks/hooks.c).
#define OURS(name) \
  extern __typeof__(name) ours_##name __attribute__((alias(#name), visibility("hidden"))) ATTRIBUTES_OF(name)
#if __has_attribute(copy)
#define ATTRIBUTES_OF(name) __attribute__((copy(name)))
#else
#define ATTRIBUTES_OF(name)
#endif

/// Defines an interposed function, which jumps to one of its variants (variants.h). The body of two of them follows. In
/// it, `stack_frame` is the function's frame address if stacks are recorded, else NULL. The third one, NAME_sampled, is
/// in sampled.c or operators.c. Unwanted code costs nothing so, and each variant returns to the program.
#define INTERPOSED(type, name, parameters, arguments) INTERPOSED_TWICE(type, return, name, parameters, arguments)
#define INTERPOSED_VOID(name, parameters, arguments) INTERPOSED_TWICE(void, , name, parameters, arguments)
#define INTERPOSED_TWICE(type, returned, name, parameters, arguments)                                              \
  __attribute__((always_inline)) static inline type name##_traced(const void* stack_frame, UNPACKED parameters);   \
  static type name##_framed parameters { returned name##_traced(__builtin_frame_address(0), UNPACKED arguments); } \
  static type name##_plain parameters { returned name##_traced(NULL, UNPACKED arguments); }                        \
  extern type name##_sampled parameters HIDDEN;                                                                    \
  static type name##_starts parameters;                                                                            \
  HIDDEN AnyFunction* name##_chosen = (AnyFunction*)name##_starts;                                                 \
  __attribute__((section("cmt_variants"), used)) static const struct VariantEntry name##_entry = {                 \
      &name##_chosen, {(AnyFunction*)name##_framed, (AnyFunction*)name##_plain, (AnyFunction*)name##_sampled}};    \
  EXPORT type name parameters;                                                                                     \
  OURS(name);                                                                                                      \
  EXPORT type name parameters { returned((__typeof__(&name))name##_chosen) arguments; }                            \
  static type name##_starts parameters {                                                                           \
    if (tracer_start())                                                                                            \
      returned((__typeof__(&name))name##_chosen) arguments;                                                        \
    else                                                                                                           \
      returned name##_framed arguments;                                                                            \
  }                                                                                                                \
  static inline type name##_traced(const void* stack_frame, UNPACKED parameters)
#define UNPACKED(...) __VA_ARGS__

/// The function that malloc jumps to.
extern AnyFunction* malloc_chosen HIDDEN;
extern void* malloc_sampled(size_t size) HIDDEN;

/// Values of Guard::kind that are no kinds of events.
enum {
  guard_own_use = 128,       ///< the tracer itself calls a function that may call malloc
  guard_in_allocator = 256,  ///< a flag: an operator new that the allocator's library has in place of the C++ library's
};

/// Whether code is of the allocator's library, or ours: an operator new of the allocator may jump to malloc, which then
/// returns to our operator new.
bool guard_is_of_allocator(const void* code);

/// Whether the function that has set the guard has not returned: its frame lies above `frame`, and still holds its
/// token. An allocator's operator new does not report its failures to us. There only calls by the allocator's code are
/// inside, not those of a new_handler, and not those that follow an exception.
static inline bool guard_holds(const struct Guard* guard, const void* frame, const void* caller) {
  if ((const void*)guard <= frame || guard->token != (thread_self.guards ^ (uintptr_t)guard)) return false;
  return __builtin_expect(guard->kind < guard_in_allocator, 1) || guard_is_of_allocator(caller);
}

/// Code that is known to be called inside of interposed functions, such as operator new's call of malloc: sets of
/// addresses, by a hash. A set has room for several, since to find out about an address takes 65 system calls.
enum { guard_inside_ways = 4 };
extern const void* guard_inside[64][guard_inside_ways] HIDDEN;
static inline const void** guard_inside_of(const void* caller) { return guard_inside[(uintptr_t)caller >> 2 & 63]; }
static inline bool guard_knows_inside(const void* caller) {
  const void* const* set = guard_inside_of(caller);
  return set[0] == caller || set[1] == caller || set[2] == caller || set[3] == caller;
}

/// Whether the call is not made inside of the guarded function: a signal handler that has interrupted it calls, or it
/// was left by longjmp.
bool guard_is_interrupted(const struct Guard* guard, const void* frame, const void* caller);

/// While guard_of_load is in the thread's place for a guard. For the call whose guard is `mine`.
void guard_look_at_load(struct Guard* mine);

/// Before the real function is called: whether the call is the program's, and so an event.
static inline bool guard_enter(struct Guard* mine, uint32_t kind) {
  struct Thread* self = &thread_self;
  mine->interrupted = NULL;
  if (__builtin_expect(self->guard != NULL, 0)) {
    const void* caller = __builtin_return_address(0);
    if (guard_holds(self->guard, mine, caller)) {
      if (guard_knows_inside(caller) || !guard_is_interrupted(self->guard, mine, caller)) return false;
      mine->interrupted = self->guard;
    } else if (self->guard == &guard_of_load) {
      guard_look_at_load(mine);
    }
  }
  mine->token = ++self->guards ^ (uintptr_t)mine;
  mine->kind = kind;
  self->guard = mine;
  return true;
}

/// A handler leaves `guards` as it was, so that the token of the function that it has interrupted stays valid.
static inline void guard_leave(const struct Guard* mine) {
  thread_self.guard = mine->interrupted;
  thread_self.guards = (mine->token ^ (uintptr_t)mine) - 1;
}

/// Records an event that may have an alignment (0: none). `stack_frame`: NULL where no stacks are recorded.
__attribute__((always_inline)) static inline void record_aligned(uint32_t kind, const void* address, uint64_t size,
                                                                 uint64_t alignment, const void* stack_frame) {
  if (alignment == 0)
    record(kind, address, size, stack_frame);
  else
    record_long(&(struct Call){.kind = kind, .address = address, .size = size, .alignment = alignment}, stack_frame);
}

/// In an interposed function: calls `function`, or the real free if there is none, guarded, and records the event
/// before. `block` is freed.
#define FREE(function, kind, size, alignment, ...)                                                    \
  do {                                                                                                \
    struct Guard guard;                                                                               \
    bool is_outermost = guard_enter(&guard, kind);                                                    \
    if (is_outermost && recording_is_on()) record_aligned(kind, block, size, alignment, stack_frame); \
    if (function)                                                                                     \
      function(__VA_ARGS__);                                                                          \
    else                                                                                              \
      real.free(block);                                                                               \
    if (is_outermost) guard_leave(&guard);                                                            \
  } while (0)

/// Records an operator new that has returned `block`, or NULL.
static inline void record_new(const struct Guard* guard, const void* block, const void* stack_frame) {
  if (recording_is_on()) record_aligned(guard->kind, block, guard->size, guard->alignment, stack_frame);
}
