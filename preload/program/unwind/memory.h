/// Finds the parts of a thread's stacks that can be read.
///
/// A walk begins at a stack pointer and only goes up. So it needs the end of the stack. There are two kinds of stacks:
/// - the thread's own: the process's first stack, or the one that libc has made for the thread. It remains while the
///   thread runs, so its end is remembered.
///
/// - others (of signal handlers, coroutines): they can be unmapped at any time, and others mapped in their place. So
///   nothing is remembered. The page of the stack pointer exists. Whenever a walk reaches a further page, the kernel is
///   asked.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/program/unwind/unwind.h"

/// The part of a stack that is known to be readable.
struct StackPart {
  uintptr_t begin, end;
  bool is_own;
  bool is_asked_for;  ///< no page at `end`
};

/// Finds the process's first stack, and whether the kernel answers.
void memory_begin(void) UNWIND_HIDDEN;

/// Finds the part that begins at `place`, a stack pointer.
void memory_enter_slowly(struct UnwindThread* self, uintptr_t place, struct StackPart* part) UNWIND_HIDDEN;
static inline void memory_enter(struct UnwindThread* self, uintptr_t place, struct StackPart* part) {
  if (__builtin_expect(place - self->own_begin < self->own_end - self->own_begin, 1))
    *part = (struct StackPart){place, self->own_end, true, false};
  else
    memory_enter_slowly(self, place, part);
}

/// Whether the 8 bytes at `place` are in the part; extends it if they can be read.
bool memory_extend(struct StackPart* part, uintptr_t place) UNWIND_HIDDEN;
static inline bool memory_holds(struct StackPart* part, uintptr_t place) {
  if (place < part->begin || place & 7) return false;
  return place < part->end || memory_extend(part, place);
}

/// Asks the kernel whether a page can be read.
bool memory_is_readable(uintptr_t address) UNWIND_HIDDEN;
