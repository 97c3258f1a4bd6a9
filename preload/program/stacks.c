// Turns a captured stack into records, as a difference from the ring's last one, and keeps the memory of captures
// (stacks.h).
#include "preload/program/stacks.h"

#include <string.h>

#include "cmt/kinds.h"
#include "preload/program/frames/frames.h"
#include "preload/program/thread.h"

enum { threads_in_sandbox = 64 };

uint64_t stacks_kinds;

LARGE_VARIABLE static struct UnwindThread* memory_of_ring[rings_max];

/// Memory for threads in a sandbox.
static struct {
  struct UnwindThread* first;
  uint32_t used;
} in_sandbox;

// Kinds of pools have no traits of blocks, so that older readers do not take them for those of malloc.
enum {
#define CMT_KIND(name, number, call, traits) name##_kind = number,
  CMT_KINDS(CMT_KIND)
#undef CMT_KIND
};

static uint64_t kinds_with(unsigned trait) {
#define CMT_KIND(name, number, call, traits) | (uint64_t)(((traits)&trait) != 0) << number
  return 0 CMT_KINDS(CMT_KIND);
#undef CMT_KIND
}

const char* stacks_begin_process(struct StackShare* share, uint32_t frames_max, bool of_frees, bool with_interpreters) {
  const char* fault = unwind_begin_process(share, (int)frames_max);
  stacks_kinds = fault ? 0 : kinds_with(cmt_allocates) | (of_frees ? kinds_with(cmt_releases) : 0);
  if (!fault) stacks_kinds |= 1ull << pool_malloc_kind | (uint64_t)of_frees << pool_free_kind;
  if (!fault) frames_begin_process(&share->interpreter, with_interpreters);
  return fault;
}

bool stacks_is_busy(const struct Thread* self) { return self->unwinder && self->unwinder->busy != 0; }

void stacks_end_process(void) {
  stacks_kinds = 0;
  frames_end();
  unwind_loader_bytes = 0;  // the table of modules gets no more entries
}

void stacks_reserve(void) {
  if (stacks_kinds && !in_sandbox.first)
    in_sandbox.first = sys_map_quietly(threads_in_sandbox * sizeof *in_sandbox.first);
}

static struct UnwindThread* new_memory(void) {
  if (!sandbox_entered) return sys_map_quietly(sizeof(struct UnwindThread));
  const uint32_t number = __atomic_fetch_add(&in_sandbox.used, 1, __ATOMIC_RELAXED);
  return in_sandbox.first && number < threads_in_sandbox ? &in_sandbox.first[number] : NULL;
}

void stacks_claim(struct Thread* self, uint32_t ring) {
  must(ring < rings_max);
  struct UnwindThread** memory = &memory_of_ring[ring];
  self->last_stack = (struct RingStack){0};
  if (self->session != thread_session) self->unwinder = NULL;  // another thread may have it now
  self->session = thread_session;
  if (stacks_kinds == 0) return;
  if (self->unwinder) {
    memory_of_ring[self->unwinder_ring] = *memory;
    *memory = self->unwinder;
  } else if (*memory) {
    memset(*memory, 0, offsetof(struct UnwindThread, code));
  } else {
    *memory = new_memory();
  }
  self->unwinder = *memory;
  self->unwinder_ring = ring;
}

void stacks_release(void) {
  frames_end();
  enum { dont_need = 4 };
  for (uint32_t ring = 0; ring < rings_max; ring++) {
    struct UnwindThread* const memory = memory_of_ring[ring];
    if (!memory) continue;
    void* const mixed = memory->mixed;
    sys(SYS_madvise, memory, sizeof *memory, dont_need);
    memory->mixed = mixed;  // a thread that was interrupted may still write there
    if (mixed) sys(SYS_madvise, mixed, frames_thread_bytes, dont_need);
  }
}

static inline void compose_difference(const struct RingStack* last, struct EventStack* stack, uint32_t kept,
                                      uint32_t frames) {
  const struct UnwindStack* now = &stack->captured;
  const bool is_whole =
      now->is_apart || !last->is_followed || now->is_cut != last->is_cut || last->is_mixed != (stack->mixed != NULL);
  if (is_whole) kept = 0;
  must(kept <= frames);
  stack->head = (struct StackRecord){kept, frames - kept, last->number, now->is_cut, now->is_apart};
  stack->slots = !is_whole && kept == frames && frames == last->frames ? 0 : stack_slots(frames - kept);
}

// Puts the frames of interpreters into the stack that was captured.
static void mix_frames(const struct Thread* self, struct EventStack* stack, uint32_t* kept, uint32_t* frames) {
  struct UnwindThread* unwinder = self->unwinder;
  if (unwind_extras & (unwind_met_module | unwind_lost_module)) frames_look();
  if (!(unwind_extras & unwind_has_interpreter) || stack->captured.is_apart) return;
  if (!unwinder->mixed) unwinder->mixed = sys_map_quietly(frames_thread_bytes);
  if (!unwinder->mixed) return;
  if (!self->last_stack.is_mixed) stack->captured.kept = 0;  // the stacks before may not have been mixed
  const struct MixedStack mixed = frames_mix(unwinder->mixed, unwinder, &stack->captured, stack->frame);
  stack->mixed = frames_of(unwinder->mixed);
  *kept = mixed.kept;
  *frames = mixed.frames;
}

// The first frames of a stack that is too large for one reservation. False: they were dropped, or a signal handler has
// forked, and this is the child, which must not write to its parent's ring.
static __attribute__((noinline)) bool send_pieces(struct Thread* self, struct EventStack* stack) {
  while (stack->head.added > stacks_frames_at_once) {
    if (stack->generation != recording_generation()) return false;
    const uint32_t left = stack->head.added - stacks_frames_at_once;
    stack->head.added = stacks_frames_at_once;
    stack->slots = stacks_slots_at_once;
    struct HeldRing held = hold_ring(self);
    const uint64_t position = ring_reserve(&held, stacks_slots_at_once);
    if (ring_reservation(self, &held, position, stacks_slots_at_once) != reserved_here) return false;
    if (stack->generation != self->generation) {
      held_publish_void(&held, position, stacks_slots_at_once);
      return false;
    }
    stacks_publish(self, stack, &held, position);
    stack->head.kept += stacks_frames_at_once;
    stack->head.added = left;
    stack->head.number = self->last_stack.number;
  }
  stack->slots = stack_slots(stack->head.added);
  return stack->generation == recording_generation();
}

// There is no memory for captures.
static void compose_unknown(const struct Thread* self, struct EventStack* stack) {
  stack->captured = (struct UnwindStack){.is_cut = true};
  stack->head = (struct StackRecord){.number = self->last_stack.number, .is_cut = true};
  stack->slots = !self->last_stack.is_unknown;
}

enum Capture stacks_capture(struct Thread* self, const void* frame, int kept, uint32_t generation,
                            struct EventStack* stack) {
  stack->frame = frame;
  stack->generation = generation;
  stack->mixed = NULL;
  if (self->unwinder) {
    // `frames` may be fewer: a signal handler may have switched to another stack, which allocates too.
    if (kept >= 0 && kept <= self->unwinder->frames)
      stack->captured = (struct UnwindStack){kept, self->unwinder->frames, self->unwinder->is_cut, false};
    else
      unwind_capture(self->unwinder, frame, &stack->captured);
    uint32_t mine = (uint32_t)stack->captured.kept, frames = (uint32_t)stack->captured.frames;
    if (__builtin_expect(unwind_extras != 0, 0)) mix_frames(self, stack, &mine, &frames);
    compose_difference(&self->last_stack, stack, mine, frames);
  } else {
    compose_unknown(self, stack);
  }
  // A signal handler may have forked, and a capture takes a while.
  if (__builtin_expect(stack->generation == recording_generation(), 1)) {
    if (__builtin_expect(stack->head.added <= stacks_frames_at_once || stack->head.is_apart, 1)) return capture_done;
    if (send_pieces(self, stack)) return capture_done;
  }
  const bool is_dropped = stack->generation == recording_generation();
  stacks_drop(self, stack);
  stacks_end(self, stack);
  return is_dropped ? capture_dropped : capture_in_parent;
}

static inline uint32_t frame_of(const struct Thread* self, const struct EventStack* stack, uint32_t number) {
  if (stack->mixed) return stack->mixed[number];
  return unwind_frame(self->unwinder, &stack->captured, (int32_t)number);
}

// The frames that do not fit the first record.
static __attribute__((noinline)) void publish_more(const struct Thread* self, const struct EventStack* stack,
                                                   const struct HeldRing* held, uint64_t position) {
  const struct StackRecord* head = &stack->head;
  for (uint32_t done = stack_frames_first; done < head->added; done += stack_frames_more) {
    const uint32_t left = head->added - done, here = left < stack_frames_more ? left : (uint32_t)stack_frames_more;
    uint32_t frames[stack_frames_more] = {0};
    for (uint32_t i = 0; i < here; i++) frames[i] = frame_of(self, stack, head->kept + done + i);
    const struct Slot slot = slot_of_frames(frames);
    held_publish(held, ++position, slot.head, slot.body);
  }
}

void stacks_publish(struct Thread* self, const struct EventStack* stack, const struct HeldRing* held,
                    uint64_t position) {
  const struct StackRecord* head = &stack->head;
  uint32_t frames[stack_frames_first] = {0};
  if (stack->slots == 0) return;
  must(stack->slots == stack_slots(head->added) && head->number < stack_numbers);
  const bool is_last = !head->is_apart && !stack->mixed && self->unwinder;
  if (__builtin_expect(is_last && head->kept <= unwind_frames_max - stack_frames_first, 1)) {
    // The reader ignores frames beyond `added`. A loop that ends there would be mispredicted.
    for (uint32_t i = 0; i < stack_frames_first; i++)
      frames[i] = unwind_frame_of_last(self->unwinder, (int32_t)(head->kept + i));
  } else {
    for (uint32_t i = 0; i < stack_frames_first && i < head->added; i++)
      frames[i] = frame_of(self, stack, head->kept + i);
  }
  const struct Slot slot = slot_of_stack(head, frames);
  held_publish(held, position, slot.head, slot.body);
  if (__builtin_expect(head->added > stack_frames_first, 0)) publish_more(self, stack, held, position);
  if (head->is_apart) return;
  self->last_stack = (struct RingStack){
      .frames = head->kept + head->added,
      .number = (head->number + 1) % stack_numbers,
      .is_cut = head->is_cut,
      .is_followed = self->unwinder != NULL,
      .is_unknown = self->unwinder == NULL,
      .is_mixed = stack->mixed != NULL,
  };
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  // A signal handler has forked meanwhile: the child's ring does not have the stack.
  if (__builtin_expect(!ring_is_held(self, held), 0)) self->last_stack = (struct RingStack){0};
}

void stacks_drop(struct Thread* self, const struct EventStack* stack) {
  if (stack->slots == 0 || stack->head.is_apart) return;
  self->last_stack.is_followed = self->last_stack.is_unknown = false;
}

void stacks_end(struct Thread* self, const struct EventStack* stack) {
  if (self->unwinder) unwind_release(self->unwinder, stack->frame);
}
