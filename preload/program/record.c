// Events beyond the path in record.h: where stamps matter, and of several records.
#include "preload/program/record.h"

#include <string.h>

#include "preload/program/lifecycle.h"
#include "preload/program/owners.h"
#include "preload/program/pages/touched.h"
#include "preload/program/tracing.h"
#if defined __x86_64__
#include "preload/program/unwind/quick.h"
#else
#include "preload/program/unwind/none.h"
#endif

__thread struct Thread thread_self = {.generation = no_generation};
struct Guard guard_of_load;
uint16_t thread_session;
enum Stamping stamping;
size_t (*record_usable)(void*);
uint64_t record_short_bytes = (uint64_t)1 << 32;

// Where threads share much memory, the owners' bytes travel between processors: 50 ns an event of churn with four
// threads, on processors without a common cache, where a fast clock cost 20.
enum { foreign_frees_counted = 256, records_a_foreign_free = 40 };

static bool has_times;
static enum StampChoice stamp_choice;
static bool has_second_thread;  // or had one when it was forked

// Known to all threads before the caller's first stamp.
static void set_stamping(enum Stamping next) { __atomic_store_n(&stamping, next, __ATOMIC_SEQ_CST); }

void record_forget(void) {
  has_times = has_second_thread = false;
  set_stamping(stamping_alone);
}

void record_begin_process(struct Control* control) { owners_begin_process(&control->owners_bytes); }

void record_second_thread(void) {
  __atomic_store_n(&has_second_thread, true, __ATOMIC_RELAXED);
  enum Stamping alone = stamping_alone;
  if (has_times || stamp_choice == stamps_all)
    set_stamping(stamping_all);
  else  // not back from `stamping_all`
    __atomic_compare_exchange_n(&stamping, &alone, stamping_sparse, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void record_times(void) {
  has_times = true;
  set_stamping(stamping_all);
}

void record_short_below(uint64_t large_bytes, size_t (*usable)(void*)) {
  const uint64_t most = (uint64_t)1 << 32;
  record_usable = usable;
  record_short_bytes = usable ? 0 : large_bytes && large_bytes < most ? large_bytes : most;
}

void record_choose_stamps(enum StampChoice choice) { stamp_choice = choice; }

// Makes all events that come to know of this one later than `stamp`.
static void advance_clock(const struct Thread* self, uint64_t stamp) {
  uint64_t told = __atomic_load_n(self->clock, __ATOMIC_RELAXED);
  while (told <= stamp &&
         !__atomic_compare_exchange_n(self->clock, &told, stamp + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
}

// Behind a fence, unless no other thread can have had the memory.
static inline uint64_t clock_of_event(void) {
  return clock_stamp(__atomic_load_n(&has_second_thread, __ATOMIC_RELAXED));
}

// In a sandbox without a clock the stamp is a told one: then the word counts such events.
static uint64_t true_stamp(const struct Thread* self, enum Ownership ownership) {
  const uint64_t stamp = clock_stamp(true);
  if (ownership == ownership_unnoted || (sandbox_entered && clock_is_slow)) advance_clock(self, stamp);
  return stamp;
}

// There is no way back (doc/architecture.md, "Sparse stamps").
static void count_foreign_free(void) {
  struct Thread* self = &thread_self;
  if (++self->foreign_frees < foreign_frees_counted) return;
  const uint64_t position = __atomic_load_n(&self->ring->reserved, __ATOMIC_RELAXED);
  const uint64_t records = position - self->foreign_since;
  self->foreign_frees = 0;
  self->foreign_since = position;
  if (records > foreign_frees_counted * records_a_foreign_free) return;
  set_stamping(stamping_all);
}

static uint64_t stamp_of_block(const struct Thread* self, uint32_t kind, const void* block, uint64_t bytes,
                               uint64_t told) {
  const enum Stamping how = __atomic_load_n(&stamping, __ATOMIC_RELAXED);
  if (how == stamping_all) return clock_of_event();
  if (how == stamping_alone || !block) return told;
  // An operator delete may get blocks of a pool of the program's own.
  const bool is_delete = (kind_traits(kind) & (cmt_releases | cmt_may_align)) == (cmt_releases | cmt_may_align);
  if (kind_makes_block(kind)) {
    const enum Ownership ownership = owners_take(self->owner, block, bytes);
    return ownership == ownership_kept ? told : true_stamp(self, ownership);
  }
  const bool is_foreign = stamp_choice == stamps_by_sharing && owners_are_others(self->owner, block);
  const enum Ownership ownership = owners_release(self->owner, block, !is_delete);
  if (ownership == ownership_kept) return told;
  if (is_foreign) count_foreign_free();
  return true_stamp(self, ownership);
}

// Marks and what threads tell of themselves stand between the events of all threads as they came.
static uint64_t stamp_of_label(const struct Thread* self) {
  const uint64_t stamp = clock_stamp(true);
  advance_clock(self, stamp);
  return stamp;
}

static uint64_t stamp_of(const struct Thread* self, uint32_t kind, const void* address, uint64_t bytes) {
  if (kind_makes_block(kind) || kind_ends_block(kind))
    return stamp_of_block(self, kind, address, bytes, told_stamp(self));
  return stamp_of_label(self);
}

/// The records of one event.
struct Batch {
  uint64_t count;
  struct Slot slots[label_bytes_max / piece_bytes + 8];
};

static uint64_t bytes_of(const struct Call* call) { return call->has_count ? call->size * call->count : call->size; }

static void append_value(struct Batch* batch, uint32_t kind, uint64_t value) {
  batch->slots[batch->count++] = (struct Slot){kind, value};
}

static void append_label(struct Batch* batch, const char* label) {
  size_t length = strnlen(label, label_bytes_max);
  for (size_t at = 0; at < length; at += piece_bytes) {
    size_t piece = length - at < piece_bytes ? length - at : piece_bytes;
    batch->slots[batch->count++] = slot_of_piece(label + at, piece);
  }
}

static uint64_t alignment_bits(uint64_t alignment) {
  return (uint64_t)(__builtin_ctzll(alignment) + 1) << slot_alignment_shift;
}

static bool fits_bits(uint64_t alignment) { return (alignment & (alignment - 1)) == 0 && alignment >> 62 == 0; }

static void append_pages(struct Batch* batch, const struct Call* call) {
  const struct BlockPages* pages = call->pages;
  if (pages->since) append_value(batch, record_since, pages->since);
  batch->slots[batch->count++] =
      (struct Slot){head_of(record_block, call->address), pages->bytes << block_bytes_shift | pages->flags};
  for (uint32_t i = 0; i < pages->runs.count; i++) {
    const struct PageRun* run = &pages->runs.runs[i];
    batch->slots[batch->count++] = slot_of_page_run(run->first, run->count, run->is_unsure, false);
  }
}

static void compose(struct Batch* batch, const struct Call* call, uint64_t stamp, uint32_t stamp_high) {
  uint64_t head = head_of(call->kind, call->address) | call->flags;
  batch->count = 0;
  if (stamp >> 32 != stamp_high) append_value(batch, record_stamp_high, stamp >> 32);
  if (call->pages) append_pages(batch, call);
  if (call->has_count) append_value(batch, record_count, call->count);
  if (call->size >> 32) append_value(batch, record_size, call->size);
  if (call->alignment && fits_bits(call->alignment)) head |= alignment_bits(call->alignment);
  if (call->alignment && !fits_bits(call->alignment)) append_value(batch, record_alignment, call->alignment);
  if (call->label) append_label(batch, call->label);
  if (record_usable && call->address && (kind_traits(call->kind) & cmt_allocates))
    append_value(batch, record_usable_size, record_usable((void*)(uintptr_t)call->address));
  batch->slots[batch->count++] = (struct Slot){head, call->size << 32 | (uint32_t)stamp};
}

// The handler has forked before the reservation. _Fork() leaves the parent's ring mapped in the child, so that this one
// was made there, and the parent, which makes its own, would wait for it.
static void give_back(const struct HeldRing* held, uint64_t position, uint64_t count) {
  uint64_t end = position + count;
  if (__atomic_compare_exchange_n(&held->ring->reserved, &end, position, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return;
  if (ring_is_below_soft(held->ring, position, count)) held_publish_void(held, position, count);
}

enum Reservation ring_reservation(const struct Thread* self, const struct HeldRing* held, uint64_t position,
                                  uint64_t count) {
  const bool has_room = ring_has_room(held->ring, position, count);
  if (__builtin_expect(ring_is_held(self, held), 1)) return has_room ? reserved_here : reserved_nowhere;
  if (held->generation == 0) give_back(held, position, count);
  return reserved_in_parent;
}

// False if a signal handler has recorded other upper bits of stamps meanwhile: then the slots are void. Or if one has
// forked: then they are the parent's. The event is to be recorded anew. `stack`: NULL, or what stands before it.
static bool append_records(struct Thread* self, const struct Call* call, uint64_t stamp, struct EventStack* stack) {
  struct Batch batch;
  uint64_t floor = self->stamp_floor;
  const uint32_t before = stack ? stack->slots : 0;
  compose(&batch, call, stamp, (uint32_t)(floor >> 32));
  struct HeldRing held = hold_ring(self);
  const uint64_t position = ring_reserve(&held, before + batch.count);
  const enum Reservation reservation = ring_reservation(self, &held, position, before + batch.count);
  if (reservation == reserved_in_parent) return !recording_is_on();  // which begins the child's recording
  if (reservation == reserved_nowhere) {
    if (stack) stacks_drop(self, stack);
    return true;
  }
  const bool is_true =
      (!stack || stack->generation == self->generation) &&
      __atomic_compare_exchange_n(&self->stamp_floor, &floor, stamp, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  if (!is_true) {
    held_publish_void(&held, position, before + batch.count);
    return false;
  }
  if (stack) stacks_publish(self, stack, &held, position);
  for (uint64_t i = 0; i < batch.count; i++)
    held_publish(&held, position + before + i, batch.slots[i].head, batch.slots[i].body);
  return true;
}

// A handler that has recorded meanwhile has later stamps.
static void append_event(struct Thread* self, const struct Call* call, uint64_t stamp) {
  while (!append_records(self, call, stamp, NULL)) stamp = stamp > self->stamp_floor ? stamp : self->stamp_floor;
}

static void append_with_stack(struct Thread* self, const struct Call* call, uint64_t stamp, struct EventStack* stack) {
  if (stamp < self->stamp_floor) stamp = self->stamp_floor;
  while (!append_records(self, call, stamp, stack)) {
    if (!stacks_recapture(self, stack)) return;
    if (stamp < self->stamp_floor) stamp = self->stamp_floor;
  }
  stacks_end(self, stack);
}

static void record_described(const struct Call* call) {
  struct Thread* self = &thread_self;
  append_event(self, call, stamp_of(self, call->kind, call->address, bytes_of(call)));
}

uint64_t record_moment(struct Thread* self) { return stamp_of_label(self); }

// Whether the event makes or ends a large block whose pages are not described yet. An end: perhaps.
static bool needs_pages(const struct Call* call) {
  if (!large_blocks_min || call->pages) return false;
  if (kind_makes_block(call->kind)) return call->given || (call->address && bytes_of(call) >= large_blocks_min);
  return kind_ends_block(call->kind) && large_block_may_be(call->address);
}

// Returns whether there are any. The block is noted, or taken, in any case.
static bool describe_pages(struct Thread* self, const struct Call* call, struct BlockPages* pages) {
  if (!kind_makes_block(call->kind)) {
    const struct LargeBlock taken = large_block_take(call->address);
    return touched_released(self, &taken, pages);
  }
  if (call->address) return touched_allocated(self, call->address, bytes_of(call), call->given, pages);
  if (bytes_of(call) != 0) touched_refused(call->given);
  return false;
}

static void record_described_with_stack(const struct Call* call, const void* stack_frame);

// A signal handler may have forked meanwhile: then this is the child, which has asked about its own memory, but may
// have to begin a ring.
static __attribute__((noinline)) void record_with_pages(const struct Call* call, const void* stack_frame) {
  struct BlockPages pages;
  struct Call with = *call;
  if (describe_pages(&thread_self, call, &pages)) with.pages = &pages;
  if (!recording_is_on()) return;
  if (stack_frame)
    record_described_with_stack(&with, stack_frame);
  else
    record_described(&with);
}

void record_long(const struct Call* call) {
  if (__builtin_expect(needs_pages(call), 0))
    record_with_pages(call, NULL);
  else
    record_described(call);
}

struct LargeBlock record_given_large(const void* block) {
  struct BlockPages pages;
  const struct LargeBlock taken = large_block_take(block);
  struct Call call = {.kind = (enum Kind)record_realloc_begin, .address = block};
  if (touched_released(&thread_self, &taken, &pages)) call.pages = &pages;
  if (recording_is_on()) record_described(&call);
  return taken;
}

static struct Call call_of(uint32_t kind, const void* address, uint64_t size) {
  return (struct Call){.kind = slot_kind(kind), .flags = kind & slot_has_old_block, .address = address, .size = size};
}

__attribute__((noinline)) void record_as_call(uint32_t kind, const void* address, uint64_t size) {
  const struct Call call = call_of(kind, address, size);
  record_long(&call);
}

void record_again(struct Ring* ring, uint32_t generation, uint64_t position, uint32_t kind, const void* address,
                  uint64_t size, uint64_t stamp) {
  struct Thread* self = &thread_self;
  struct HeldRing held = hold_ring(self);
  if (held.ring == ring) {  // else the child's recording has begun
    held.generation = generation;
    const enum Reservation reservation = ring_reservation(self, &held, position, 1);
    if (reservation == reserved_nowhere) return;
    if (reservation == reserved_here) held_publish_void(&held, position, 1);
  }
  if (!recording_is_on()) return;  // begins a child's recording
  const uint64_t least = self->ring == ring ? self->stamp_floor : told_stamp(self);
  const struct Call call = call_of(kind, address, size);
  append_event(self, &call, stamp > least ? stamp : least);
}

static __attribute__((noinline)) void record_checked(uint32_t kind, const void* block, uint64_t size, uint64_t told) {
  if (is_short(size))
    append_short(kind, block, size, stamp_of_block(&thread_self, slot_kind(kind), block, size, told));
  else
    record_as_call(kind, block, size);
}

// Whether a told stamp is enough in a page of several rings. False: not known.
__attribute__((always_inline)) static inline bool is_kept(uint8_t owner, const void* block, uint64_t size,
                                                          bool is_allocation) {
  return __builtin_expect(is_allocation ? owners_have_pieces(owner, block, size) : owners_include(owner, block), 1);
}

__attribute__((always_inline)) static inline void record_stamped(uint32_t kind, const void* block, uint64_t size,
                                                                 uint64_t told, bool is_allocation) {
  if (__atomic_load_n(&stamping, __ATOMIC_RELAXED) == stamping_all && is_short(size))
    append_short(kind, block, size, clock_of_event());
  else if (__builtin_expect(is_short(size), 1) && is_kept(thread_self.owner, block, size, is_allocation))
    append_short(kind, block, size, told);
  else
    record_checked(kind, block, size, told);
}

void record_stamped_allocation(uint32_t kind, const void* block, uint64_t size, uint64_t told) {
  record_stamped(kind, block, size, told, true);
}

void record_stamped_release(uint32_t kind, const void* block, uint64_t size, uint64_t told) {
  record_stamped(kind, block, size, told, false);
}

static uint64_t stamp_of_short(const struct Thread* self, uint32_t kind, const void* block, uint64_t size) {
  const uint64_t told = told_stamp(self);
  if (__builtin_expect(is_told_enough(slot_kind(kind), block, size), 1)) return told;
  if (__atomic_load_n(&stamping, __ATOMIC_RELAXED) == stamping_all) return clock_of_event();
  if (is_kept(self->owner, block, size, kind_makes_block(slot_kind(kind)))) return told;
  return stamp_of_block(self, slot_kind(kind), block, size, told);
}

// The stack is captured first: a stamp is to be recorded soon after it was read.
static void record_described_with_stack(const struct Call* call, const void* stack_frame) {
  struct Thread* self = &thread_self;
  struct EventStack stack;
  if (!stacks_are_of(call->kind)) {
    record_described(call);
    return;
  }
  if (!stacks_capture(self, stack_frame, &stack)) return;
  append_with_stack(self, call, stamp_of(self, call->kind, call->address, bytes_of(call)), &stack);
}

void record_long_with_stack(const struct Call* call, const void* stack_frame) {
  if (__builtin_expect(needs_pages(call), 0))
    record_with_pages(call, stack_frame);
  else
    record_described_with_stack(call, stack_frame);
}

// An event of one record, and its stack, at `position`, which is reserved.
static __attribute__((noinline)) void record_reserved(uint32_t kind, const void* address, uint64_t size, uint64_t stamp,
                                                      const struct HeldRing* held, uint64_t position,
                                                      struct EventStack* stack) {
  struct Thread* self = &thread_self;
  const enum Reservation reservation = ring_reservation(self, held, position, stack->slots + 1);
  if (reservation == reserved_nowhere) {
    stacks_drop(self, stack);
    stacks_end(self, stack);
    return;
  }
  const bool is_held = reservation == reserved_here;
  if (is_held && is_stamp_high_known(self, stamp) && stack->generation == self->generation) {
    stacks_publish(self, stack, held, position);
    publish_short(held, position + stack->slots, kind, address, size, stamp);
    stacks_end(self, stack);
    return;
  }
  const struct Call call = call_of(kind, address, size);
  if (is_held) held_publish_void(held, position, stack->slots + 1);
  if (stacks_recapture(self, stack)) append_with_stack(self, &call, stamp, stack);
}

// What capturing quickly leaves to others.
static __attribute__((noinline)) void record_slowly(uint32_t kind, const void* address, uint64_t size,
                                                    const void* stack_frame, int kept, uint32_t generation) {
  struct Thread* self = &thread_self;
  struct EventStack stack;
  if (!stacks_capture_on(self, stack_frame, kept, generation, &stack)) return;
  const uint64_t stamp = stamp_of_short(self, kind, address, size);
  struct HeldRing held = hold_ring(self);
  const uint64_t position = ring_reserve(&held, stack.slots + 1);
  record_reserved(kind, address, size, stamp, &held, position, &stack);
}

// The frames of the last stack that do not fit its first record.
static void publish_frames(const struct Thread* self, const struct HeldRing* held, uint32_t first, uint32_t end,
                           uint64_t position) {
  for (; first < end; first += stack_frames_more) {
    uint32_t frames[stack_frames_more];
    for (uint32_t i = 0; i < stack_frames_more; i++) frames[i] = unwind_frame_of_last(self->unwinder, (int)(first + i));
    const struct Slot slot = slot_of_frames(frames);
    held_publish(held, ++position, slot.head, slot.body);
  }
}

// The records of the last stack, which go on from those of the one before.
__attribute__((always_inline)) static inline void publish_stack(struct Thread* self, const struct HeldRing* held,
                                                                uint32_t kept, uint32_t added, uint64_t position) {
  const struct StackRecord head = {kept, added, self->last_stack.number, self->last_stack.is_cut, false};
  uint32_t frames[stack_frames_first];
  // Those beyond `added` are not read back. A loop that ends there would be mispredicted.
  for (uint32_t i = 0; i < stack_frames_first; i++)
    frames[i] = unwind_frame_of_last(self->unwinder, (int32_t)(kept + i));
  const struct Slot slot = slot_of_stack(&head, frames);
  held_publish(held, position, slot.head, slot.body);
  if (added > stack_frames_first) publish_frames(self, held, kept + stack_frames_first, kept + added, position);
  self->last_stack.frames = kept + added;
  self->last_stack.number = (head.number + 1) % stack_numbers;
}

// Whether the last stack, which was captured in `generation`, is told as a difference, and at once.
static inline bool is_told_quickly(const struct Thread* self, int kept, uint32_t generation) {
  const struct UnwindThread* unwinder = self->unwinder;
  return self->last_stack.is_followed && self->last_stack.is_cut == unwinder->is_cut &&
         (uint32_t)(unwinder->frames - kept) <= stacks_frames_at_once && generation == recording_generation();
}

void record_with_stack(uint32_t kind, const void* address, uint64_t size, const void* stack_frame) {
  struct Thread* self = &thread_self;
  struct UnwindThread* unwinder = self->unwinder;
  const bool may_be_large = kind_ends_block(slot_kind(kind)) && large_block_may_be(address);
  if (__builtin_expect(!is_short(size) || may_be_large, 0)) {
    const struct Call call = call_of(kind, address, size);
    record_long_with_stack(&call, stack_frame);
    return;
  }
  const uint32_t generation = self->generation;
  const int kept = __builtin_expect(unwinder != NULL, 1) ? unwind_capture_quickly(unwinder, stack_frame) : -1;
  if (__builtin_expect(kept < 0 || !is_told_quickly(self, kept, generation), 0)) {
    record_slowly(kind, address, size, stack_frame, kept, generation);
    return;
  }
  const uint32_t frames = (uint32_t)unwinder->frames, added = frames - (uint32_t)kept;
  const uint32_t slots = added != 0 || frames != self->last_stack.frames ? stack_slots(added) : 0;
  const uint64_t stamp = stamp_of_short(self, kind, address, size);
  struct HeldRing held = hold_ring(self);
  const uint64_t position = ring_reserve(&held, slots + 1);
  const bool has_room = ring_is_below_soft(held.ring, position, slots + 1);
  if (__builtin_expect(has_room && is_stamp_high_known(self, stamp) && generation == recording_generation(), 1)) {
    if (slots) publish_stack(self, &held, (uint32_t)kept, added, position);
    publish_short(&held, position + slots, kind, address, size, stamp);
    unwind_release(unwinder, stack_frame);
    return;
  }
  struct EventStack stack = {
      .frame = stack_frame,
      .captured = {kept, (int32_t)frames, unwinder->is_cut, false},
      .head = {(uint32_t)kept, added, self->last_stack.number, unwinder->is_cut, false},
      .slots = slots,
      .generation = generation,
  };
  record_reserved(kind, address, size, stamp, &held, position, &stack);
}
