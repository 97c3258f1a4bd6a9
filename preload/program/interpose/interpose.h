/// Shared by the interposed functions: the macros that define one with its variants, and what their bodies have in
/// common.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "preload/program/interpose/guard.h"
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

/// Ends this process's supervisor (collector_start.h). Returns whether it has ended one.
bool end_supervisor(void);

/// The function that malloc jumps to.
extern AnyFunction* malloc_chosen HIDDEN;
extern void* malloc_sampled(size_t size) HIDDEN;

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
