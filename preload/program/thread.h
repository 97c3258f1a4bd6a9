/// A thread of the program: its state, and how it reserves and publishes slots of its ring (preload/protocol.h,
/// "Records"). The hard thing: a signal handler may record or fork between any two instructions here.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/program/kernel.h"
#include "preload/program/pages/touched.h"
#include "preload/program/stacks.h"
#include "preload/program/tracing.h"
#include "preload/protocol.h"

/// Marks a running interposed function, in whose frame it is (interpose.h).
struct Guard {
  uint64_t token;
  struct Guard* interrupted;  ///< of the function that a signal handler has interrupted, in which this one is called
  uint32_t kind;              ///< of operator new, else kind_malloc
  uint64_t size;
  uint64_t alignment;
  const void* stack_frame;  ///< of operator new, where stacks are recorded
};

/// Takes the place of a guard while no guarded function runs, but the loader has loaded a module. The module's words
/// are to be looked at when the loader has returned (hooks/loads.h). So each of the thread's next calls is seen, at no
/// cost for others.
extern struct Guard guard_of_load HIDDEN;

/// A thread of the program. Zero at its birth, or as an ended thread left it (thread_word_at).
struct Thread {
  struct Guard* guard;  ///< of the outermost interposed function
  uint64_t left;        ///< of the sampler: bytes to the thread's next point (sampling/sampler.h)
  struct Slot* slots;
  struct Ring* ring;
  uint64_t* clock;         ///< Control::clock
  uint64_t stamp_floor;    ///< the stamp whose upper bits its ring got last; no later one is less
  uint32_t mark;           ///< thread_mark() of `generation`; 0: it has no ring
  uint32_t generation;     ///< of the process in which `ring` is this thread's (tracing.h)
  uint8_t owner;           ///< the ring's number in owners.h
  uint8_t has_destructor;  ///< whether its end will be noticed
  uint8_t destructor_rounds;
  bool is_in_pool;                ///< within an allocator of an interpreter (pools/python_pool.c)
  uint64_t guards;                ///< for tokens
  const void* retry_caller;       ///< the return address of the malloc in an operator new that has failed
  struct Guard retry;             ///< of that operator new
  uint64_t begin_ns;              ///< CLOCK_MONOTONIC when it claimed its ring; 0: not read, in a sandbox
  uint16_t session;               ///< thread_session when it claimed its ring
  uint8_t doublings;              ///< of the sampling interval when `left` was drawn
  uint8_t drawn_at;               ///< of the interval when the point was drawn that the thread is at
  uint32_t ringless;              ///< the generation in which there was no ring for it
  uint32_t unwinder_ring;         ///< the number of the ring that `unwinder` belongs to
  uint32_t foreign_frees;         ///< of blocks that another ring had, since foreign_since
  uint32_t word;                  ///< thread_word() when it was in enter_recording() last; 0: it was not yet
  struct UnwindThread* unwinder;  ///< NULL: no stacks, or no memory for them
  struct RingStack last_stack;
  bool load_is_deep;        ///< of hooks/loads.c: the dlopen has RTLD_DEEPBIND
  uint8_t awaits_load;      ///< not 0: the sampler's slow functions are to look whether a dlopen has returned
  bool has_called_realloc;  ///< with a block, since pools/python_pool.c has cleared this
  const void* last_made;    ///< the block of the last event with a stack
  struct AskCredit asking;
  uintptr_t load_place;       ///< of hooks/loads.c: where the return address of the dlopen is,
  const void* load_caller;    ///< and what it is
  uint64_t chance;            ///< of the sampler: its random numbers; 0: it has not drawn yet
  uint64_t left_before_load;  ///< `left`, while awaits_load is set and `left` is 0
  uint64_t foreign_since;     ///< reserved positions of its ring when foreign_frees was last 0
};
enum { no_generation = 0x7fffffff };

extern __thread struct Thread thread_self HIDDEN;

/// The place of a word of the C library that differs from 0 and is constant in a thread, in bytes from the thread
/// pointer. As a rule it is a half of the thread's own address.
///
/// The C library does not clear the place that cmttrace may give to the variables of an attached tracer
/// (cmttrace/attach/thread_storage.h). A new thread may find those of an ended one. Then the word is the kernel's id,
/// by which it notices that.
extern uintptr_t thread_word_at HIDDEN;
static inline uint32_t thread_word(void) { return machine_thread_word(thread_word_at); }

/// A number that is the same only in one thread and one generation. It is never 0, the mark of a new thread. Words have
/// less than 22 bits, and the lowest bits of the generation are above them. In one place, both could give a new thread
/// the mark that an ended one left before a fork.
static inline uint32_t thread_mark(uint32_t generation) {
  return (generation << 22 | generation >> 10) ^ no_generation ^ thread_word();
}
static inline bool thread_has_ring_of(const struct Thread* self, uint32_t generation) {
  return self->mark == thread_mark(generation);
}
/// Whether the calling thread's events are recorded. Asked before the real function is called.
static inline bool recording_is_on(void) {
  return __builtin_expect(thread_has_ring_of(&thread_self, recording_generation()), 1) || enter_recording();
}
/// Counts the recordings that an attached tracer has made in this process and those before it.
extern uint16_t thread_session HIDDEN;

/// Lets the thread's next calls notice a load: guard_of_load is set, and nothing is left of the sampler's countdown.
static inline void thread_await_load(struct Thread* self) {
  self->guard = &guard_of_load;
  if (self->awaits_load) return;
  self->left_before_load = self->left;
  self->awaits_load = 1;
  self->left = 0;
}

/// Whether `limit` need not be read. The acquire orders the collector's reads of these slots before our writes. (Where
/// this thread has stored `soft` itself, in wait_for_room(), the acquire of `limit` there does.)
static inline bool ring_is_below_soft(const struct Ring* ring, uint64_t position, uint64_t count) {
  return position + count <= __atomic_load_n(&ring->soft, __ATOMIC_ACQUIRE);
}

static inline bool ring_has_room(struct Ring* ring, uint64_t position, uint64_t count) {
  return __builtin_expect(ring_is_below_soft(ring, position, count), 1) || wait_for_room(ring, position, count);
}

/// A thread's ring, as it was before slots of it were reserved. A signal handler may fork, and an event of the child
/// gives the thread another ring. Memory that nobody reads is then in the place of this one (rings_forget).
struct HeldRing {
  struct Ring* ring;
  struct Slot* slots;
  uint32_t count;       ///< of slots
  uint32_t generation;  ///< recording_generation() when they were reserved; 0: in a child that has no ring
};

static inline struct HeldRing hold_ring(const struct Thread* self) {
  const struct HeldRing held = {self->ring, self->slots, self->ring->slots, 0};
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  return held;
}

// Reserves `count` positions and returns the first. The thread sanitizer does not see into assembly: there it is an
// atomic.
static inline uint64_t ring_reserve(struct HeldRing* held, uint64_t count) {
#ifdef CMT_SANITIZED
  held->generation = recording_generation();
  return __atomic_fetch_add(&held->ring->reserved, count, __ATOMIC_RELAXED);
#else
  return machine_add(&held->ring->reserved, count, generation_page, &held->generation);
#endif
}

/// Whether the ring is this process's. If so, this process must publish the slots that it has reserved. If a signal
/// handler forks from here on, the child publishes into the memory that fork() has put in the ring's place. (_Fork()
/// and clone() put none there: then the child publishes the same records once more.)
static inline bool ring_is_held(const struct Thread* self, const struct HeldRing* held) {
  return self->ring == held->ring && recording_generation() != 0;
}

static inline void slot_publish(struct Slot* all, uint32_t slots, uint64_t position, uint64_t head, uint64_t body) {
  must((slots & (slots - 1)) == 0 && (head & (slot_valid | slot_parity)) == 0);
  struct Slot* slot = &all[position & (slots - 1)];
  slot->body = body;
  head |= slot_valid | (position & slots ? slot_parity : 0);
  __atomic_store_n(&slot->head, head, __ATOMIC_RELEASE);
}

static inline void held_publish(const struct HeldRing* held, uint64_t position, uint64_t head, uint64_t body) {
  slot_publish(held->slots, held->count, position, head, body);
}

static inline void held_publish_void(const struct HeldRing* held, uint64_t position, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) held_publish(held, position + i, record_void, 0);
}

enum Reservation {
  reserved_here,
  reserved_nowhere,    ///< there was no room: the event is dropped
  reserved_in_parent,  ///< a signal handler has forked meanwhile, and this is the child: it is to record the event anew
};

// Called if the handler has forked before the reservation. _Fork() leaves the parent's ring mapped in the child. So the
// child has reserved slots of its parent, whose collector would wait for them.
static inline void give_slots_back(const struct HeldRing* held, uint64_t position, uint64_t count) {
  uint64_t end = position + count;
  if (__atomic_compare_exchange_n(&held->ring->reserved, &end, position, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return;
  if (ring_is_below_soft(held->ring, position, count)) held_publish_void(held, position, count);
}

/// Returns the state of `count` slots from `position` on, after waiting for room.
static inline enum Reservation ring_reservation(const struct Thread* self, const struct HeldRing* held,
                                                uint64_t position, uint64_t count) {
  const bool has_room = ring_has_room(held->ring, position, count);
  if (__builtin_expect(ring_is_held(self, held), 1)) return has_room ? reserved_here : reserved_nowhere;
  if (held->generation == 0) give_slots_back(held, position, count);
  return reserved_in_parent;
}
