// Finds out whether a call is made inside of a guarded function, where the code that calls does not show it.
#include "preload/program/interpose/guard.h"

#include <signal.h>

#include "preload/program/real.h"

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

__attribute__((noinline)) bool guard_is_of_allocator(const void* code) {
  return is_allocator_code(code) || ((const char*)code >= __ehdr_start && (const char*)code < _end);
}

const void* guard_inside[64][guard_inside_ways];

/// As the kernel has it.
struct SignalAction {
  uintptr_t handler;
  uint64_t flags;
  uintptr_t restorer;
  uint64_t mask;
};

// Where handlers return to: the return address in the frame that the kernel makes for them. 0 where none is installed.
static uintptr_t handlers_return(void) {
  static uintptr_t known;
  for (int signal = 1; known == 0 && signal <= 64; signal++) {
    struct SignalAction action;
    const bool has_one = sys(SYS_rt_sigaction, signal, 0, &action, 8) == 0 && action.handler > (uintptr_t)SIG_IGN;
    if (has_one) known = action.restorer;
  }
  return known;
}

// Looks for a signal's frame in the stack, with the registers of a place in the guarded function.
static bool has_signal_frame(const char* begin, const char* end, uintptr_t guarded) {
  enum { stack_max = 256 * 1024 };
  const uintptr_t wanted = handlers_return();
  if (end - begin > stack_max) end = begin + stack_max;
  for (const uintptr_t* word = (const uintptr_t*)begin; wanted && (const char*)word < end; word++) {
    const uintptr_t stack = machine_interrupted_stack(word, end, wanted);
    if (stack && stack <= guarded && guarded - stack <= stack_max) return true;
  }
  return false;
}

__attribute__((noinline)) bool guard_is_interrupted(const struct Guard* guard, const void* frame, const void* caller) {
  stack_t other;
  if (sandbox_entered) return false;
  const char *begin = frame, *end = (const char*)guard;
  if (sys(SYS_sigaltstack, 0, &other) == 0 && (other.ss_flags & SS_ONSTACK)) {
    const char* top = (const char*)other.ss_sp + other.ss_size;
    if (end < (const char*)other.ss_sp || end > top) end = top;
  }
  if (has_signal_frame(begin, end, (uintptr_t)guard)) return true;
  if (is_program_code(caller)) {  // no real function calls it: longjmp has left the guarded one
    thread_self.guard = NULL;
    return true;
  }
  const void** set = guard_inside_of(caller);
  for (int way = guard_inside_ways - 1; way > 0; way--) set[way] = set[way - 1];
  set[0] = caller;
  return false;
}
