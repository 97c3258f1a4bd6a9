/// The guard, which makes one event of a call and the calls inside of it. Calls by a signal handler that interrupts it
/// are events of their own.
///
/// The real functions call interposed ones in turn: aligned_alloc calls memalign, operator new calls malloc. Only the
/// outermost call is an event. Its guard, in its frame, is `thread_self.guard` while it runs. A frame that an exception
/// or longjmp has left must not guard for ever: see guard_holds().
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/program/thread.h"

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
