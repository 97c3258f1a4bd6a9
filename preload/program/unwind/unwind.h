/// Call stacks: which functions have called an interposed function.
///
/// To walk a stack outwards, one has to know for each return address how far its function has moved the stack pointer.
/// Compilers write that down for exceptions, in .eh_frame. Three ideas make walking cheap enough for each call of
/// malloc:
///
/// 1. Rules (rules.h). The .eh_frame entry of a return address becomes one word, kept in a table by address.
/// 2. The last stack. Between two allocations of a thread only the innermost frames change. So the thread keeps its
///    last stack: for each frame the return address and the place that it was loaded from. A walk goes by rules only
///    until it arrives at a frame of the last stack. All frames outside of that one were computed from words in memory,
///    which are loaded once more and compared (walk.h). No return address of the program is changed.
/// 3. Only differences are handed out: how many outer frames are as before, and the new ones.
///
///     last stack    main  run  parse   list  node           outermost first
///
///     this stack    main  run  parse   item  text  copy
///                   '-- compared --'   '- by rules -'       kept = 3, frames = 6
///
/// Contract
/// - No lock and no allocation. System calls are made only when a part of a stack is first seen, and never once
///   `sandbox_entered` (kernel.h).
///
/// - Memory is read only where the stack is known to be: a wrong rule gives a wrong or cut stack, never a fault.
///
/// - A stack that ends before its outermost function is marked as cut.
/// - A frame is an index of UnwindTable::rule, whose entry has its address. An index never gets another address.
/// - Frames are those of machine code. Code without rules (of a JIT compiler) is passed by its frame pointers where
///   those are sound. An interpreter's functions, as Python's, are not seen.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/stack_share.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UNWIND_HIDDEN __attribute__((visibility("hidden")))

enum {
  unwind_limit_max = 4096,                    ///< frames of one stack; of a larger one the innermost
  unwind_frames_max = unwind_limit_max + 64,  ///< of the arrays: the longest stack, and room for the next walk
  unwind_words_max = 256,                     ///< of the last stack, beside return addresses
  unwind_apart_frames_max = 1024,             ///< of a stack that a signal handler has within a capture
  unwind_margin = 8,                          ///< entries at the ends of arrays, so that many can be read at once
  unwind_near_max = 256,                      ///< rules of a thread's own
  unwind_registers = 17,
  unwind_stack_bytes = 12 << 10,  ///< of the tracer's own stack
};

/// A word of the stack that decides where an outer frame lies: mostly a saved rbp that is a frame pointer.
struct UnwindWord {
  uintptr_t at;
  uint64_t value;
  int32_t frame;  ///< whose place follows from it
  int32_t from;   ///< the frame, inside of that one, from whose rule `at` follows
};

/// The state of a thread. Zeroed memory is a thread without a last stack.
struct UnwindThread {
  uintptr_t busy;        ///< the frame of a stack that is being captured, or not released
  uintptr_t busy_code;   ///< to where that returns; 0: `busy` is being changed
  uintptr_t busy_apart;  ///< the frame of a stack apart
  uint32_t epoch;        ///< of the last stack; it is forgotten when modules go, and in a new process
  int32_t frames;        ///< of the last stack
  int32_t words;
  bool is_cut;                   ///< it ends before the outermost function
  bool is_limited;               ///< because it has as many frames as are allowed
  bool is_resent;                ///< its frames have got other numbers
  bool has_block;                ///< whether `block_begin` was looked for
  uintptr_t own_begin, own_end;  ///< the stack that the thread was last seen on, if that remains as long as it runs
  uintptr_t quick_begin, quick_bytes;  ///< the range of stack pointers for which the last stack is usable (quick.h)
  uintptr_t block_begin, block_end;    ///< the stack that libc has made for the thread
  int32_t full_steps;                  ///< of the capture under way (full.c)
  int32_t distant_captures;            ///< since one whose innermost frame has a place
  int32_t stray_captures;              ///< within another that seems to have been left (capture.c)
  uintptr_t base;                      ///< of `places`
  uint64_t stepped;                    ///< frames that were walked by rules, ever
  struct UnwindRule near[unwind_near_max];  ///< by a hash of the address; `key` has the rule's index from bit 47 on
  uint64_t code_before[unwind_margin];
  uint64_t code[unwind_frames_max];  ///< outermost first: return address, and index of its rule from bit 47 on
  uint32_t places_before[unwind_margin];
  uint32_t places[unwind_frames_max];        ///< where it was loaded from: (address - base) / 4; bit 0: see walk.h
  struct UnwindWord word[unwind_words_max];  ///< by frame, outermost first
  uint32_t apart[unwind_apart_frames_max];   ///< indexes, of a stack apart, at the end
  void* mixed;                               ///< memory of the caller of captures, or NULL
  bool is_elsewhere;                         ///< a capture runs on `stack`,
  uint64_t registers[unwind_registers];      ///< and has left the program's stack with these (STORE_REGISTERS)
  char stack[unwind_stack_bytes];
};
#ifndef __cplusplus
_Static_assert(sizeof(struct UnwindThread) <= 76 * 1024, "memory of a thread");
#endif

/// A captured stack.
struct UnwindStack {
  int32_t kept;    ///< outer frames that are those of the stack captured before in this thread
  int32_t frames;  ///< all
  bool is_cut;     ///< it has further frames outside of these
  bool is_apart;   ///< of a signal handler within another capture: all frames are here, and the last stack is as it was
};

/// Prepares this process; in a forked child once more. `share`: zeroed memory, which stays while the process runs. A
/// capture of the parent that goes on in the child may still write to its entries. For that the child's `share` has the
/// same address, and the parent's counts (of rules, modules and bytes of text). `frames_max`: the most frames of a
/// stack; 0: unwind_limit_max. Returns NULL, or the reason why there are no stacks. Looks symbols up, so it may
/// allocate.
const char* unwind_begin_process(struct StackShare* share, int frames_max) UNWIND_HIDDEN;

/// Captures the stack of the function that has called an interposed one. `frame`: the latter's
/// __builtin_frame_address(0). All stacks of a thread must be used, or forgotten, in order: `kept` counts from the one
/// before. The stack is valid until unwind_release(). Until then a signal handler gets stacks apart.
void unwind_capture(struct UnwindThread* self, const void* frame, struct UnwindStack* stack) UNWIND_HIDDEN;

/// A signal handler finds both or a `code` of 0.
static inline void unwind_set_busy(struct UnwindThread* self, uintptr_t frame, uintptr_t code) {
  __atomic_store_n(&self->busy_code, 0, __ATOMIC_RELAXED);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  __atomic_store_n(&self->busy, frame, __ATOMIC_RELAXED);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (code) __atomic_store_n(&self->busy_code, code, __ATOMIC_RELAXED);
}

/// Ends what unwind_capture() with the same `frame` has begun.
static inline void unwind_release(struct UnwindThread* self, const void* frame) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (__builtin_expect(self->busy == (uintptr_t)frame, 1))
    unwind_set_busy(self, 0, 0);
  else if (self->busy_apart == (uintptr_t)frame)
    self->busy_apart = 0;
}

/// The most frames of a stack.
extern int unwind_limit UNWIND_HIDDEN;

/// The index of the rule of a frame, 0 the outermost, of the last stack.
static inline uint32_t unwind_frame_of_last(const struct UnwindThread* self, int32_t number) {
  return (uint32_t)(self->code[number] >> 47);
}

/// The same of a stack until it is released.
static inline uint32_t unwind_frame(const struct UnwindThread* self, const struct UnwindStack* stack, int32_t number) {
  if (stack->is_apart) return self->apart[unwind_apart_frames_max - stack->frames + number];
  return unwind_frame_of_last(self, number);
}

/// Captures a stack by rules alone, without the last stack, which stays as it is. To be released, too.
void unwind_capture_apart(struct UnwindThread* self, const void* frame, struct UnwindStack* stack) UNWIND_HIDDEN;

/// The next stack has kept = 0.
static inline void unwind_forget(struct UnwindThread* self) {
  self->frames = self->words = 0;
  self->quick_bytes = 0;
}

/// The same in all threads.
void unwind_forget_all(void) UNWIND_HIDDEN;

/// The work that stacks need beside captures: a sum of
enum {
  unwind_met_module = 1,       ///< a module was met for the first time, and is to be looked at
  unwind_lost_module = 2,      ///< a module has gone
  unwind_has_interpreter = 4,  ///< stacks have frames of an interpreter (frames/frames.h)
};
extern uint8_t unwind_extras UNWIND_HIDDEN;
/// An address in a module that was met since the call before; 0: there is none.
uintptr_t unwind_next_module(void) UNWIND_HIDDEN;
/// Lets unwind_next_module() begin anew.
void unwind_first_module(void) UNWIND_HIDDEN;

/// The code of the loader (ld.so), which frees a module's struct link_map when it has unmapped the module.
extern uintptr_t unwind_loader_begin UNWIND_HIDDEN, unwind_loader_bytes UNWIND_HIDDEN;

/// Ends the rules of a module with it, because another module may be mapped to its addresses. Not every module goes by
/// dlclose: libc unloads iconv's modules by itself. But the loader always frees the module's struct link_map, with the
/// program's free, which is ours. Called by free before the real one.
void unwind_module_freed(const void* link_map) UNWIND_HIDDEN;
static inline void unwind_before_free(const void* block, const void* caller) {
  if (__builtin_expect((uintptr_t)caller - unwind_loader_begin < unwind_loader_bytes, 0)) unwind_module_freed(block);
}

#ifdef __cplusplus
}
#endif
