/// Call stacks of events: the memory that captures need, and the records that come before an event's own
/// (preload/protocol.h, "Call stacks"). The stacks themselves come from unwind/unwind.h.
///
///     struct EventStack stack;
///     stacks_capture(self, frame, …, &stack);      from here on signal handlers capture apart
///
///     held = hold_ring(self);
///     position = ring_reserve(&held, stack.slots + …);
///     stacks_publish(self, &stack, &held, position);    or stacks_drop(self, &stack), if there was no room
///     stacks_end(self, &stack);
///
/// Each thread captures into an UnwindThread of 76 KiB, of which few pages are touched. It belongs to the thread's
/// ring, and goes to the ring's next owner. In a forked child the thread that has forked keeps its own: a signal
/// handler may have forked within a capture, which goes on in the child.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/program/kernel.h"
#include "preload/program/unwind/unwind.h"
#include "preload/protocol.h"

struct HeldRing;
struct Thread;

/// Kinds of events that have stacks, a bit for each. 0: none are recorded.
extern uint64_t stacks_kinds HIDDEN;
static inline bool stacks_are_of(uint32_t kind) { return kind < record_events && (stacks_kinds >> kind & 1) != 0; }

/// The ring's last stack, as the ring's reader has it.
struct RingStack {
  uint32_t frames;
  uint8_t number;  ///< of the next record_stack that is not apart
  bool is_cut;
  bool is_followed;  ///< it is the unwinder's last stack too, and the next one can be recorded as a difference
  bool is_unknown;   ///< it was recorded as unknown, for lack of memory
  bool is_mixed;     ///< it is the last one of frames/frames.h
};

/// The most slots and new frames of one reservation.
enum {
  stacks_slots_at_once = 64,
  stacks_frames_at_once = stack_frames_first + (stacks_slots_at_once - 1) * stack_frames_more,
};

/// The stack of one event.
struct EventStack {
  const void* frame;  ///< of the interposed function
  struct UnwindStack captured;
  struct StackRecord head;
  const uint32_t* mixed;  ///< all of its frames, with those of an interpreter (frames/frames.h); NULL: as captured
  uint32_t slots;         ///< that its records take; 0: it is the ring's last stack
  uint32_t generation;    ///< of the process (tracing.h) in which it was captured
};

/// In a process that begins. `frames_max`, `share`: of unwind_begin_process(). Returns NULL, or why there are no
/// stacks.
/// `with_interpreters`: whether the frames of Python are recorded.
const char* stacks_begin_process(struct StackShare* share, uint32_t frames_max, bool of_frees, bool with_interpreters);
/// Whether the thread captures, beneath this function.
bool stacks_is_busy(const struct Thread* self);
/// There are no stacks in this process.
void stacks_end_process(void);

/// Gives the thread the memory that belongs to ring number `ring`, its own.
void stacks_claim(struct Thread* self, uint32_t ring);

/// Gives back what the threads' memory holds, when nobody captures any more.
void stacks_release(void);

/// Before a sandbox is entered: maps memory for threads that begin in it.
void stacks_reserve(void);

/// The next stack of each thread is whole.
static inline void stacks_restart(void) { unwind_forget_all(); }

enum Capture {
  capture_done,
  capture_dropped,    ///< the event is not recorded
  capture_in_parent,  ///< a signal handler has forked meanwhile, and this is the child: it is to capture anew
};
/// Captures the stack of an event, or takes over the thread's last one, of which `kept` frames are the ring's, and
/// which was captured in `generation`. `kept`: -1 if there is none.
enum Capture stacks_capture(struct Thread* self, const void* frame, int kept, uint32_t generation,
                            struct EventStack* stack);
void stacks_publish(struct Thread* self, const struct EventStack* stack, const struct HeldRing* held,
                    uint64_t position);
void stacks_drop(struct Thread* self, const struct EventStack* stack);
void stacks_end(struct Thread* self, const struct EventStack* stack);
