/// Records events (preload/protocol.h): inline the path that nearly every call takes, in record.c the others. The hard
/// thing: a signal handler may record other events, or fork, between any two instructions.
///
/// An event has an address and a size, and perhaps more: a stack, further slots, a true stamp, touched pages. The name
/// of each function says which of these it records:
///
/// | function                       | stack    | slots       | stamp                        | pages        |
/// |--------------------------------|----------|-------------|------------------------------|--------------|
/// | record                         | if given | as needed   | as needed                    | if large     |
/// | record_short                   | no       | one         | the caller's                 | no           |
/// | record_short_true_allocation,  | no       | one         | true if memory changes hands | no           |
/// | record_short_true_release      |          |             |                              |              |
/// | record_short_stack             | yes      | one + stack | as needed                    | no           |
/// | record_short_again             | no       | several     | the caller's, or a later one | no           |
/// | record_pool                    | if given | as needed   | true, if there are threads   | no           |
/// | record_long                    | if given | several     | as needed                    | if large     |
/// | record_long_short              | if given | several     | as needed                    | if large     |
/// | record_long_label              | no       | several     | true                         | no           |
/// | record_long_pages_begin        | no       | several     | as needed                    | if large     |
/// | record_long_pages_of_all       | no       | several     | true                         | of all large |
/// | record_long_pages_discarded    | no       | several     | true                         | given back   |
///
/// - stack "if given": the argument `stack_frame` is not NULL, and events of the kind have stacks.
///
/// - slots "one": or several, if the upper bits of the stamp are new. A short event that turned out to be a long one
///   goes to record_long_short(), which takes the arguments of a short event.
///
/// - stamp "as needed": true where other rings have touched the block's memory, or times are recorded, else coarse.
///
/// - pages "if large": the event makes or ends a block of large_blocks_min bytes or more.
///
/// interpose.h adds record_aligned() and record_new(), which choose between record() and record_long(). Only the
/// interposed functions (folder interpose) and lifecycle.c ask whether an event is recorded: recording_is_on().
///
/// Calls go one way, with one exception: lifecycle.c -> record.c -> stacks.c, pages/touched.c -> thread.h. The
/// exception: record.c asks recording_is_on() again after a signal handler has forked within an event. The thread is
/// then in the child, whose recording begins with this event. To begin it, enter_recording (tracing.h) calls
/// lifecycle.c, which records the ring's owner.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmt/kinds.h"
#include "preload/program/kernel.h"
#include "preload/program/owners.h"
#include "preload/program/pages/large_blocks.h"
#include "preload/program/stacks.h"
#include "preload/program/thread.h"
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

static inline bool kind_is_operator_new(uint32_t kind) {
  return (kind_traits(kind) & (cmt_allocates | cmt_may_align)) == (cmt_allocates | cmt_may_align);
}

static inline bool kind_is_pools(uint32_t kind) { return kind == kind_pool_malloc || kind == kind_pool_free; }
/// The number of a pool, in the bits of the alignment.
enum { slot_pool_mask = slot_alignment_mask << slot_alignment_shift };

/// An event that has more than an address and a size.
struct Call {
  enum Kind kind;
  uint32_t flags;  ///< slot_has_old_block; of a pool's event: the pool
  const void* address;
  uint64_t size;
  bool has_count;
  uint64_t count;
  uint64_t alignment;
  const char* label;
  const struct LargeBlock* given;  ///< of a realloc's result: the large block that it was given
  const struct BlockPages* pages;  ///< pages/touched.h
};

/// The bytes that it asks for.
static inline uint64_t call_bytes(const struct Call* call) {
  return call->has_count ? call->size * call->count : call->size;
}

/// Which events that make or end a block have true stamps (preload/protocol.h). All other events always have one.
enum Stamping {
  stamping_alone,   ///< none: the process has one thread, and does not record each event's time
  stamping_sparse,  ///< those where memory changes hands
  stamping_all,
};
extern enum Stamping stamping HIDDEN;
/// Which events of a process with several threads have true stamps, unless times are recorded.
enum StampChoice {
  stamps_sparse,      ///< those where memory changes hands
  stamps_by_sharing,  ///< the same, until threads often free each other's blocks; from there on all
  stamps_all,
};
void stamps_choose(enum StampChoice choice);
/// Times are recorded: each event has a true stamp.
void stamps_for_times(void);
/// A second thread records from here on. To be called before it hands any block on.
void stamps_for_threads(void);
/// Before another recording of the same process: neither times nor a second thread were recorded.
void stamps_forget(void);

/// The real malloc_usable_size if each block's usable size is recorded, else NULL.
extern size_t (*usable_size_of)(void*) HIDDEN;
/// Events about fewer bytes are short: they take one slot.
extern uint64_t short_bytes HIDDEN;
/// Makes events about `large_bytes` and more long (0: none are), and all events where `usable` is not NULL.
void choose_short_events(uint64_t large_bytes, size_t (*usable)(void*));

/// Records an event that has more than a kind, an address and a size. `stack_frame`: __builtin_frame_address(0) of the
/// interposed function that the program has called, or NULL where no stacks are recorded.
void record_long(const struct Call* call, const void* stack_frame);
/// Records an event that needs no other member of Call. `kind`: with flags of the head.
void record_long_short(uint32_t kind, const void* address, uint64_t size, const void* stack_frame);
/// Records an event with a label, of which label_bytes_max bytes are kept.
void record_long_label(enum Kind kind, const char* label);
/// Records that a realloc is given a block that may be a large one. Returns the block if it is one.
struct LargeBlock record_long_pages_begin(const void* block);
/// Records the pages of all large blocks that live: the process may be about to end.
void record_long_pages_of_all(void);
/// The program is about to give back pages of its blocks by madvise: records those of the block at `begin`. Returns
/// that block; its address is 0 if its pages were not asked about.
struct LargeBlock record_long_pages_before_discard(const void* begin);
/// It has given them back. `block`: of the call before.
void record_long_pages_discarded(const void* begin, uint64_t bytes, const struct LargeBlock* block);
/// Records an event of a pool's block. `kind`: with the number of the pool (slot_pool_mask).
void record_pool(uint32_t kind, const void* address, uint64_t size, const void* stack_frame);
/// Records an event whose kind has stacks.
void record_short_stack(uint32_t kind, const void* address, uint64_t size, const void* stack_frame);
/// Records a short event that may need a true stamp. `kind`: with flags of the head. `coarse`: its coarse_stamp().
void record_short_true_allocation(uint32_t kind, const void* block, uint64_t size, uint64_t coarse);
void record_short_true_release(uint32_t kind, const void* block, uint64_t size, uint64_t coarse);
/// Records a short event that has reserved `position` of `ring`, in `generation`. For positions beyond `soft`, stamps
/// with new upper bits, and rings that are not this process's any more.
void record_short_again(struct Ring* ring, uint32_t generation, uint64_t position, uint32_t kind, const void* address,
                        uint64_t size, uint64_t stamp);

/// The stamp of an event that needs no true one: its thread knows it without reading the clock. The caller reads it
/// before it finds out that the event needs no true one (doc/design/sparse_stamps.md).
static inline uint64_t coarse_stamp(const struct Thread* self) {
  const uint64_t coarse = __atomic_load_n(self->clock, __ATOMIC_ACQUIRE);
  return coarse > self->stamp_floor ? coarse : self->stamp_floor;
}

static inline uint64_t head_of(uint32_t kind, const void* address) {
  return (uint64_t)address << slot_address_shift | kind;
}

/// Whether an event takes one slot, unless the stamp's upper bits are new, or it ends a block with touched pages.
static inline bool is_short(uint64_t size) { return size < short_bytes; }

/// Whether a short event may end a block with touched pages, and so be a long one.
static inline bool may_end_large(uint32_t kind, const void* address) {
  return kind_ends_block(slot_kind(kind)) && large_block_may_be(address) && large_block_is(address);
}

/// Whether the stamp's upper bits are those of the ring. Valid once the position is reserved: a signal handler that
/// records other ones has done so before, and is seen, or does so after this position.
static inline bool is_stamp_high_known(const struct Thread* self, uint64_t stamp) {
  return (stamp ^ self->stamp_floor) >> 32 == 0;
}

static inline void publish_short(const struct HeldRing* held, uint64_t position, uint32_t kind, const void* address,
                                 uint64_t size, uint64_t stamp) {
  held_publish(held, position, head_of(kind, address), size << 32 | (uint32_t)stamp);
}

/// Records an event of one record with a stamp, or several where the stamp has new upper bits.
static inline void record_short(uint32_t kind, const void* address, uint64_t size, uint64_t stamp) {
  const struct Thread* self = &thread_self;
  struct HeldRing held = hold_ring(self);
  const uint64_t position = ring_reserve(&held, 1);
  const bool is_below_soft = ring_is_below_soft(held.ring, position, 1);
  if (__builtin_expect(is_below_soft && is_stamp_high_known(self, stamp) && ring_is_held(self, &held), 1))
    publish_short(&held, position, kind, address, size, stamp);
  else
    record_short_again(held.ring, held.generation, position, kind, address, size, stamp);
}

/// Whether a coarse stamp is enough for an event of the kind, because the ring has the block's pages as a whole. False:
/// not known.
static inline bool is_coarse_enough(uint32_t kind, const void* block, uint64_t size) {
  const enum Stamping how = __atomic_load_n(&stamping, __ATOMIC_RELAXED);
  if (how == stamping_alone) return true;
  return how == stamping_sparse && owners_have_pages(thread_self.owner, block, kind_makes_block(kind) ? size : 1);
}

/// Records an event. `kind`: with flags of the head. `stack_frame`: NULL where no stacks are recorded. Inlined, because
/// a call would cost each event a few ns.
__attribute__((always_inline)) static inline void record(uint32_t kind, const void* address, uint64_t size,
                                                         const void* stack_frame) {
  if (stack_frame && stacks_are_of(slot_kind(kind))) {
    record_short_stack(kind, address, size, stack_frame);
    return;
  }
  if (__builtin_expect(!is_short(size), 0) || __builtin_expect(may_end_large(kind, address), 0)) {
    record_long_short(kind, address, size, NULL);
    return;
  }
  const uint64_t stamp = coarse_stamp(&thread_self);
  if (is_coarse_enough(slot_kind(kind), address, size))
    record_short(kind, address, size, stamp);
  else if (kind_makes_block(slot_kind(kind)))
    record_short_true_allocation(kind, address, size, stamp);
  else
    record_short_true_release(kind, address, size, stamp);
}
