/// Recording an event (preload/protocol.h): the path that nearly every call takes, as inline functions, and the others
/// in record.c. The caller has asked recording_is_on() (lifecycle.h) before.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmt/kinds.h"
#include "preload/program/kernel.h"
#include "preload/program/owners.h"
#include "preload/program/pages/large_blocks.h"
#include "preload/program/stacks.h"
#include "preload/program/tracing.h"
#include "preload/protocol.h"

/// The kinds of events, as in cmt/kinds.h.
enum Kind {
#define CMT_KIND(name, number, call, traits) kind_##name = number,
  CMT_KINDS(CMT_KIND)
#undef CMT_KIND
};

static_assert((int)cmt_kind_limit == (int)record_events, "a record holds every kind");

/// The traits of a kind (enum cmt_kind_traits); none for other numbers.
static inline unsigned kind_traits(uint32_t kind) {
  switch (kind) {
#define CMT_KIND(name, number, call, traits) \
  case number:                               \
    return traits;
    CMT_KINDS(CMT_KIND)
#undef CMT_KIND
  }
  return cmt_nothing;
}

// Sets of bits, since a table would cost the program a cache line.
#define CMT_KIND(name, number, call, traits) | (uint64_t)(((traits)&cmt_allocates) != 0) << number
static inline bool kind_makes_block(uint32_t kind) {
  return kind < cmt_kind_limit && ((0ull CMT_KINDS(CMT_KIND)) >> kind & 1) != 0;
}
#undef CMT_KIND
#define CMT_KIND(name, number, call, traits) | (uint64_t)(((traits)&cmt_releases) != 0) << number
static inline bool kind_ends_block(uint32_t kind) {
  return kind == record_realloc_begin || (kind < cmt_kind_limit && ((0ull CMT_KINDS(CMT_KIND)) >> kind & 1) != 0);
}
#undef CMT_KIND

/// An event that has more than an address and a size.
struct Call {
  enum Kind kind;
  uint32_t flags;  ///< slot_has_old_block
  const void* address;
  uint64_t size;
  bool has_count;
  uint64_t count;
  uint64_t alignment;
  const char* label;
  const struct LargeBlock* given;  ///< of a realloc's result: the large block that it was given
  const struct BlockPages* pages;  ///< pages/touched.h
};

/// In the frame of an interposed function (interpose.h).
struct Guard {
  uint64_t token;
  struct Guard* interrupted;  ///< of the function that a signal handler has interrupted, in which this one is called
  uint32_t kind;              ///< of operator new, else kind_malloc
  uint64_t size;
  uint64_t alignment;
  const void* stack_frame;  ///< of operator new, where stacks are recorded
};

/// In the place of a guard where no guarded function runs, but a module was loaded whose words are to be looked at when
/// the loader has returned (hooks/loads.h): so that each of the thread's next calls is seen, at no cost for others.
extern struct Guard guard_of_load HIDDEN;

/// A thread of the program. Zero at its birth, but for the generation, which must not be that of a forked child.
struct Thread {
  struct Guard* guard;  ///< of the outermost interposed function
  struct Slot* slots;
  struct Ring* ring;
  uint64_t* clock;           ///< Control::clock
  uint64_t stamp_floor;      ///< the stamp whose upper bits its ring was told last; no later one is less
  uint32_t generation;       ///< of the process in which `ring` is this thread's (tracing.h), or no_generation
  uint8_t owner;             ///< the ring's number in owners.h
  uint64_t guards;           ///< for tokens
  const void* retry_caller;  ///< the return address of the malloc in an operator new that has failed
  struct Guard retry;        ///< of that operator new
  uint8_t has_destructor;    ///< whether its end will be noticed
  uint8_t destructor_rounds;
  uint16_t session;               ///< thread_session when it claimed its ring
  uint32_t ringless;              ///< the generation in which there was no ring for it
  uint32_t unwinder_ring;         ///< the number of the ring that `unwinder` belongs to
  struct UnwindThread* unwinder;  ///< NULL: no stacks, or no memory for them
  struct RingStack last_stack;
  uint64_t asked_at, ask_credit;  ///< of pages/touched.c: a stamp, and stamps
  uintptr_t load_place;           ///< of hooks/loads.c: where the return address of the dlopen stands,
  const void* load_caller;        ///< and what it is
  bool load_is_deep;              ///< the dlopen has RTLD_DEEPBIND
  uint32_t foreign_frees;         ///< of blocks that another ring had, since foreign_since
  uint64_t foreign_since;         ///< reserved positions of its ring when foreign_frees was last 0
};
enum { no_generation = 0x7fffffff };

extern __thread struct Thread thread_self HIDDEN;
/// Counts the recordings that an attached tracer has made in this process and those before it.
extern uint16_t thread_session HIDDEN;

/// Which events have true stamps (preload/protocol.h).
enum Stamping {
  stamping_alone,   ///< none: the process has one thread, and records no times
  stamping_sparse,  ///< those where memory changes hands
  stamping_all,
};
extern enum Stamping stamping HIDDEN;
/// The real malloc_usable_size if each block's usable size is recorded, else NULL.
extern size_t (*record_usable)(void*) HIDDEN;
/// Events about fewer bytes take one record.
extern uint64_t record_short_bytes HIDDEN;
/// Blocks of so many bytes take several (0: none do), and where `usable` is not NULL all events do.
void record_short_below(uint64_t large_bytes, size_t (*usable)(void*));

/// In a process that begins.
void record_begin_process(struct Control* control);
/// Before another recording of the same process: it is as if there had been none.
void record_forget(void);
/// A second thread records from here on. To be called before it hands any block on.
void record_second_thread(void);
/// Times are recorded: each event has a true stamp.
void record_times(void);
/// Which events of a process with several threads have true stamps, unless times are recorded.
enum StampChoice {
  stamps_sparse,      ///< those where memory changes hands
  stamps_by_sharing,  ///< the same, until threads often free each other's blocks; from there on all
  stamps_all,
};
void record_choose_stamps(enum StampChoice choice);

/// Records an event of one or several records.
void record_long(const struct Call* call);
/// Records an event with its stack. `stack_frame`: __builtin_frame_address(0) of the interposed function that the
/// program has called. record_long_with_stack() also takes events whose kind has no stack.
void record_with_stack(uint32_t kind, const void* address, uint64_t size, const void* stack_frame);
void record_long_with_stack(const struct Call* call, const void* stack_frame);
/// Records that a realloc is given a block that may be a large one, and says which.
struct LargeBlock record_given_large(const void* block);
/// A stamp that no event of before exceeds, and none of what comes falls below.
uint64_t record_moment(struct Thread* self);
/// Records an event that may need a true stamp. `kind`: with flags of the head. `told`: its told_stamp().
void record_stamped_allocation(uint32_t kind, const void* block, uint64_t size, uint64_t told);
void record_stamped_release(uint32_t kind, const void* block, uint64_t size, uint64_t told);
/// Records an event that may take several records. `kind`: with flags of the head.
void record_as_call(uint32_t kind, const void* address, uint64_t size);
/// The same for one that has reserved `position` of `ring`, in `generation`, and is beyond `soft`, or whose stamp has
/// new upper bits, or whose ring is not this process's any more.
void record_again(struct Ring* ring, uint32_t generation, uint64_t position, uint32_t kind, const void* address,
                  uint64_t size, uint64_t stamp);

/// The stamp of an event that needs no true one: what its thread knows without reading the clock. To be read before it
/// is found out that the event needs no true one (doc/architecture.md, "Sparse stamps").
static inline uint64_t told_stamp(const struct Thread* self) {
  const uint64_t told = __atomic_load_n(self->clock, __ATOMIC_ACQUIRE);
  return told > self->stamp_floor ? told : self->stamp_floor;
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

/// Whether the ring is this process's. If so, what was reserved in it is to be published, by this process: where a
/// signal handler forks from here on, the child's goes to the memory that fork() has put in its place. (_Fork() and
/// clone() put none there: then the child publishes the same records once more.)
static inline bool ring_is_held(const struct Thread* self, const struct HeldRing* held) {
  return self->ring == held->ring && recording_generation() != 0;
}

static inline void slot_publish(struct Slot* all, uint32_t slots, uint64_t position, uint64_t head, uint64_t body) {
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
/// What has become of `count` slots from `position` on.
enum Reservation ring_reservation(const struct Thread* self, const struct HeldRing* held, uint64_t position,
                                  uint64_t count);

static inline uint64_t head_of(uint32_t kind, const void* address) {
  return (uint64_t)address << slot_address_shift | kind;
}

/// Whether an event takes one record, unless the stamp's upper bits are new.
static inline bool is_short(uint64_t size) { return size < record_short_bytes; }

/// Whether the stamp's upper bits are those of the ring. Valid once the position is reserved: a signal handler that
/// records other ones has done so before, and is seen, or does so behind.
static inline bool is_stamp_high_known(const struct Thread* self, uint64_t stamp) {
  return (stamp ^ self->stamp_floor) >> 32 == 0;
}

static inline void publish_short(const struct HeldRing* held, uint64_t position, uint32_t kind, const void* address,
                                 uint64_t size, uint64_t stamp) {
  held_publish(held, position, head_of(kind, address), size << 32 | (uint32_t)stamp);
}

/// Records an event of one record with a stamp, or several where the stamp has new upper bits.
static inline void append_short(uint32_t kind, const void* address, uint64_t size, uint64_t stamp) {
  const struct Thread* self = &thread_self;
  struct HeldRing held = hold_ring(self);
  const uint64_t position = ring_reserve(&held, 1);
  const bool is_below_soft = ring_is_below_soft(held.ring, position, 1);
  if (__builtin_expect(is_below_soft && is_stamp_high_known(self, stamp) && ring_is_held(self, &held), 1))
    publish_short(&held, position, kind, address, size, stamp);
  else
    record_again(held.ring, held.generation, position, kind, address, size, stamp);
}

/// Whether a told stamp is enough for an event of the kind. Here of those whose pages are the ring's as a whole.
static inline bool is_told_enough(uint32_t kind, const void* block, uint64_t size) {
  const enum Stamping how = __atomic_load_n(&stamping, __ATOMIC_RELAXED);
  if (how == stamping_alone) return true;
  return how == stamping_sparse && owners_have_pages(thread_self.owner, block, kind_makes_block(kind) ? size : 1);
}

/// Records an event. `kind`: with flags of the head. `stack_frame`: NULL where no stacks are recorded. Inlined, because
/// a call would cost each event a few ns.
__attribute__((always_inline)) static inline void record(uint32_t kind, const void* address, uint64_t size,
                                                         const void* stack_frame) {
  if (stack_frame && stacks_are_of(slot_kind(kind))) {
    record_with_stack(kind, address, size, stack_frame);
    return;
  }
  if (kind_ends_block(slot_kind(kind)) && __builtin_expect(large_block_may_be(address), 0)) {
    record_as_call(kind, address, size);
    return;
  }
  const uint64_t stamp = told_stamp(&thread_self);
  if (!is_told_enough(slot_kind(kind), address, size)) {
    (kind_makes_block(slot_kind(kind)) ? record_stamped_allocation : record_stamped_release)(kind, address, size,
                                                                                             stamp);
    return;
  }
  if (__builtin_expect(!is_short(size), 0)) {
    record_as_call(kind, address, size);
    return;
  }
  append_short(kind, address, size, stamp);
}
