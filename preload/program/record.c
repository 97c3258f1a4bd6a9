// Events beyond the path in record.h: where stamps matter, and of several records.
#include "preload/program/record.h"

#include <string.h>

#include "preload/program/frames/frames.h"
#include "preload/program/owners.h"
#include "preload/program/pages/touched.h"
#include "preload/program/tracing.h"
#include "preload/text.h"
#if defined __x86_64__
#include "preload/program/unwind/quick.h"
#else
#include "preload/program/unwind/none.h"
#endif

// Composing the records of one event of several slots. The ring's reader expects the event itself last
// (preload/protocol.h, "Records").

// The records of one event. They are composed twice, to count them and to publish them: a copy of them would take 1.4
// KB of a stack, which may be a signal handler's.
struct Batch {
  const struct HeldRing* held;  // NULL: the records are only counted
  uint64_t position;            // of the first record in the ring
  uint64_t count;
  size_t (*usable_size)(void*);  // NULL: not recorded. The same for both times
};

static inline void append_slot(struct Batch* batch, struct Slot slot) {
  must(batch->count < label_bytes_max / piece_bytes + 8);
  if (batch->held) held_publish(batch->held, batch->position + batch->count, slot.head, slot.body);
  batch->count++;
}

static inline void append_value(struct Batch* batch, uint32_t kind, uint64_t value) {
  append_slot(batch, (struct Slot){kind, value});
}

static inline void append_label(struct Batch* batch, const char* label) {
  size_t length = strnlen(label, label_bytes_max);
  for (size_t at = 0; at < length; at += piece_bytes) {
    size_t piece = length - at < piece_bytes ? length - at : piece_bytes;
    append_slot(batch, slot_of_piece(label + at, piece));
  }
}

static inline uint64_t alignment_bits(uint64_t alignment) {
  return (uint64_t)(__builtin_ctzll(alignment) + 1) << slot_alignment_shift;
}

static inline bool fits_bits(uint64_t alignment) { return (alignment & (alignment - 1)) == 0 && alignment >> 62 == 0; }

static inline void append_pages(struct Batch* batch, const struct Call* call) {
  const struct BlockPages* pages = call->pages;
  must(pages->runs.count <= page_runs_max);
  must((pages->flags & ~(uint32_t)block_flags_mask) == 0 &&
       pages->bytes << block_bytes_shift >> block_bytes_shift == pages->bytes);
  if (pages->since) append_value(batch, record_since, pages->since);
  append_slot(batch,
              (struct Slot){head_of(record_block, call->address), pages->bytes << block_bytes_shift | pages->flags});
  for (uint32_t i = 0; i < pages->runs.count; i++) {
    const struct PageRun* run = &pages->runs.runs[i];
    append_slot(batch, slot_of_page_run(run->first, run->count, run->is_unsure, false));
  }
}

/// Composes the records of `call`. `stamp_high`: the upper bits of stamps that the ring's reader knows.
static __attribute__((noinline)) void compose(struct Batch* batch, const struct Call* call, uint64_t stamp,
                                              uint32_t stamp_high) {
  must((uint32_t)call->kind <= slot_kind_mask && (call->flags & ~(uint32_t)(slot_has_old_block | slot_pool_mask)) == 0);
  uint64_t head = head_of(call->kind, call->address) | call->flags;
  if (stamp >> 32 != stamp_high) append_value(batch, record_stamp_high, stamp >> 32);
  if (call->pages) append_pages(batch, call);
  if (call->has_count) append_value(batch, record_count, call->count);
  if (call->size >> 32) append_value(batch, record_size, call->size);
  if (call->alignment && fits_bits(call->alignment)) head |= alignment_bits(call->alignment);
  if (call->alignment && !fits_bits(call->alignment)) append_value(batch, record_alignment, call->alignment);
  if (call->label) append_label(batch, call->label);
  if (batch->usable_size && call->address && (kind_traits(call->kind) & cmt_allocates))
    append_value(batch, record_usable_size, batch->usable_size((void*)(uintptr_t)call->address));
  append_slot(batch, (struct Slot){head, call->size << 32 | (uint32_t)stamp});
}

__thread struct Thread thread_self;
static_assert(sizeof(struct Thread) <= 512, "the room in thread_storage.h");
uintptr_t thread_word_at = machine_thread_word_at;
struct Guard guard_of_load;
uint16_t thread_session;
enum Stamping stamping;
size_t (*usable_size_of)(void*);
uint64_t short_bytes = (uint64_t)1 << 32;

// Where threads share much memory, the owners' bytes travel between processors. An event of churn with four threads
// then cost 50 ns on processors without a common cache; a fast clock cost 20.
enum { foreign_frees_counted = 256, records_a_foreign_free = 40 };

static bool has_times;
static enum StampChoice stamp_choice;
static bool has_second_thread;  // or had one when it was forked

// Known to all threads before the caller's first stamp.
static void set_stamping(enum Stamping next) { __atomic_store_n(&stamping, next, __ATOMIC_SEQ_CST); }

void stamps_forget(void) {
  has_times = has_second_thread = false;
  set_stamping(stamping_alone);
}

void stamps_for_threads(void) {
  __atomic_store_n(&has_second_thread, true, __ATOMIC_RELAXED);
  enum Stamping alone = stamping_alone;
  if (has_times || stamp_choice == stamps_all)
    set_stamping(stamping_all);
  else  // not back from `stamping_all`
    __atomic_compare_exchange_n(&stamping, &alone, stamping_sparse, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void stamps_for_times(void) {
  has_times = true;
  set_stamping(stamping_all);
}

void choose_short_events(uint64_t large_bytes, size_t (*usable)(void*)) {
  const uint64_t most = (uint64_t)1 << 32;
  usable_size_of = usable;
  short_bytes = usable ? 0 : large_bytes && large_bytes < most ? large_bytes : most;
}

void stamps_choose(enum StampChoice choice) { stamp_choice = choice; }

// Makes all events that come to know of this one later than `stamp`.
static void advance_clock(const struct Thread* self, uint64_t stamp) {
  uint64_t coarse = __atomic_load_n(self->clock, __ATOMIC_RELAXED);
  while (coarse <= stamp &&
         !__atomic_compare_exchange_n(self->clock, &coarse, stamp + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
}

// Reads the clock after a fence, unless no other thread can have had the memory.
static inline uint64_t clock_of_event(void) {
  return clock_stamp(__atomic_load_n(&has_second_thread, __ATOMIC_RELAXED));
}

// In a sandbox without a clock the stamp is a coarse one. Control::clock then counts such events.
static uint64_t true_stamp(const struct Thread* self, enum Ownership ownership) {
  const uint64_t stamp = clock_stamp(true);
  if (ownership == ownership_unnoted || (sandbox_entered && clock_is_slow)) advance_clock(self, stamp);
  return stamp;
}

// There is no way back (doc/design/sparse_stamps.md).
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
                               uint64_t coarse) {
  const enum Stamping how = __atomic_load_n(&stamping, __ATOMIC_RELAXED);
  if (how == stamping_all) return clock_of_event();
  if (how == stamping_alone || !block) return coarse;
  // An operator delete may get blocks of a pool of the program's own.
  const bool is_delete = (kind_traits(kind) & (cmt_releases | cmt_may_align)) == (cmt_releases | cmt_may_align);
  if (kind_makes_block(kind)) {
    const enum Ownership ownership = owners_take(self->owner, block, bytes);
    return ownership == ownership_kept ? coarse : true_stamp(self, ownership);
  }
  const bool is_foreign = stamp_choice == stamps_by_sharing && owners_are_others(self->owner, block);
  const enum Ownership ownership = owners_release(self->owner, block, !is_delete);
  if (ownership == ownership_kept) return coarse;
  if (is_foreign) count_foreign_free();
  return true_stamp(self, ownership);
}

// Marks and the records of threads about themselves are in order with the events of all threads.
static uint64_t stamp_of_label(const struct Thread* self) {
  const uint64_t stamp = clock_stamp(true);
  advance_clock(self, stamp);
  return stamp;
}

// Nobody knows which thread has touched the memory of a pool's block last.
static uint64_t stamp_of_pool(const struct Thread* self) {
  const bool is_alone = __atomic_load_n(&stamping, __ATOMIC_RELAXED) == stamping_alone;
  return is_alone ? coarse_stamp(self) : clock_stamp(true);
}

static uint64_t stamp_of(const struct Thread* self, uint32_t kind, const void* address, uint64_t bytes) {
  if (kind_makes_block(kind) || kind_ends_block(kind))
    return stamp_of_block(self, kind, address, bytes, coarse_stamp(self));
  return kind_is_pools(kind) ? stamp_of_pool(self) : stamp_of_label(self);
}

// False if a signal handler has recorded other upper bits of stamps meanwhile: then the slots are void. Or if one has
// forked: then they are the parent's. The event is to be recorded anew. `stack`: NULL, or the stack whose records come
// first.
static bool append_records(struct Thread* self, const struct Call* call, uint64_t stamp, struct EventStack* stack) {
  struct Batch batch = {.usable_size = usable_size_of};
  uint64_t floor = self->stamp_floor;
  const uint32_t before = stack ? stack->slots : 0, stamp_high = (uint32_t)(floor >> 32);
  compose(&batch, call, stamp, stamp_high);
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
  struct Batch published = {.held = &held, .position = position + before, .usable_size = batch.usable_size};
  compose(&published, call, stamp, stamp_high);
  must(published.count == batch.count);
  return true;
}

// A handler that has recorded meanwhile has later stamps.
static void append_event(struct Thread* self, const struct Call* call, uint64_t stamp) {
  while (!append_records(self, call, stamp, NULL)) stamp = stamp > self->stamp_floor ? stamp : self->stamp_floor;
}

// Captures a stack, or takes over the one that was captured in `generation`, if `kept` is not -1. False: the event is
// not recorded. It was dropped, or recording is off.
static bool capture(struct Thread* self, const void* stack_frame, int kept, uint32_t generation,
                    struct EventStack* stack) {
  for (;; kept = -1, generation = self->generation) {
    const enum Capture outcome = stacks_capture(self, stack_frame, kept, generation, stack);
    if (__builtin_expect(outcome == capture_done, 1)) return true;
    if (outcome == capture_dropped || !recording_is_on()) return false;
  }
}

// The slots of the stack are void.
static bool capture_again(struct Thread* self, struct EventStack* stack) {
  stacks_drop(self, stack);
  stacks_end(self, stack);
  return capture(self, stack->frame, -1, self->generation, stack);
}

static void append_with_stack(struct Thread* self, const struct Call* call, uint64_t stamp, struct EventStack* stack) {
  if (stamp < self->stamp_floor) stamp = self->stamp_floor;
  while (!append_records(self, call, stamp, stack)) {
    if (!capture_again(self, stack)) return;
    if (stamp < self->stamp_floor) stamp = self->stamp_floor;
  }
  stacks_end(self, stack);
}

// An event whose pages are described, or which has none. The stack is captured first: a stamp is to be recorded soon
// after it was read.
static void record_long_plain(const struct Call* call, const void* stack_frame) {
  struct Thread* self = &thread_self;
  struct EventStack stack;
  const bool has_stack = stack_frame && stacks_are_of(call->kind);
  if (has_stack) self->last_made = call->address;
  if (has_stack && !capture(self, stack_frame, -1, self->generation, &stack)) return;
  const uint64_t stamp = stamp_of(self, call->kind, call->address, call_bytes(call));
  if (has_stack)
    append_with_stack(self, call, stamp, &stack);
  else
    append_event(self, call, stamp);
}

// Pages of a block that lives on.
static void record_long_pages(const struct LargeBlock* block, const struct BlockPages* pages) {
  const void* address = (const void*)block->address;
  record_long_plain(&(struct Call){.kind = (enum Kind)record_pages, .address = address, .pages = pages}, NULL);
}

// Asks which pages the program has written to; of those, records all runs but the last ones. False: not all are known.
static bool ask_about_all(struct Thread* self, const struct LargeBlock* block, struct BlockPages* pages) {
  const uint64_t lost = self->ring->lost;
  struct AskedPages asked = {0};
  enum Touched answer = touched_ask(&self->asking, block, &asked, &pages->runs);
  for (; answer == touched_more && self->generation == recording_generation();
       answer = touched_ask(&self->asking, block, &asked, &pages->runs))
    record_long_pages(block, pages);
  const bool is_known = answer == touched_all && self->generation == recording_generation();
  if (!is_known) pages->runs.count = 0;
  return is_known && self->ring->lost == lost;
}

// Closes a block whose pages are all recorded, and one that is seldom filled slowly: its end reports the rest.
static void close_block(const struct LargeBlock* block, bool is_written) {
  if (is_written)
    large_block_set_written(block);
  else if (touched_is_asked_once(block->bytes))
    large_block_close((const void*)block->address);
}

static bool record_pages_of_one(const struct LargeBlock* block, struct Thread* self, bool is_last) {
  if (block->was_resident || block->is_written) return true;
  if (self->generation != recording_generation()) return false;
  struct BlockPages pages;
  touched_clear(&pages, 0, stamp_of_label(self));
  const bool is_known = ask_about_all(self, block, &pages);
  if (!is_known && is_last) pages.flags = block_is_last;
  if (pages.flags || (is_known && pages.runs.count)) record_long_pages(block, &pages);
  if (is_known && !is_last) close_block(block, touched_is_whole(block, &pages.runs));
  return true;
}

// A round over the open blocks. `since`: a stamp from before the kernel was asked for the window.
struct Round {
  struct Thread* self;
  struct AskWindow window;
  uint64_t since;
};

static void note_since(void* of_round) {
  struct Round* round = of_round;
  round->since = stamp_of_label(round->self);
}

static bool record_pages_in_round(const struct LargeBlock* block, void* of_round) {
  struct Round* round = of_round;
  struct Thread* self = round->self;
  if (block->was_resident || block->is_written) return true;
  if (self->generation != recording_generation()) return false;
  struct BlockPages pages;
  touched_clear(&pages, 0, 0);
  switch (touched_ask_in_round(&self->asking, block, &round->window, note_since, round, &pages.runs)) {
    case round_is_over:
      return false;
    case round_needs_question:
      return record_pages_of_one(block, self, false);
    case round_has_known:
      break;
  }
  const uint64_t lost = self->ring->lost;
  pages.since = round->since;
  if (pages.runs.count) record_long_pages(block, &pages);
  if (self->ring->lost == lost) close_block(block, touched_is_whole(block, &pages.runs));
  return true;
}

// Asks about all open blocks if it is time.
static void record_round(struct Thread* self) {
  if (!touched_begin_round(&self->asking)) return;
  struct Round round = {.self = self, .window = ask_window_take()};
  large_blocks_visit(large_blocks_open, record_pages_in_round, &round);
  ask_window_give_back(&round.window);
}

static bool record_pages_at_end(const struct LargeBlock* block, void* thread) {
  return record_pages_of_one(block, thread, true);
}

void record_long_pages_of_all(void) { large_blocks_visit(large_blocks_all, record_pages_at_end, &thread_self); }

struct LargeBlock record_long_pages_before_discard(const void* begin) {
  const struct LargeBlock block = large_block_around((uintptr_t)begin);
  if (block.address) record_pages_of_one(&block, &thread_self, false);
  record_round(&thread_self);
  return large_block_around((uintptr_t)begin);  // which may be known to be written now
}

void record_long_pages_discarded(const void* begin, uint64_t bytes, const struct LargeBlock* block) {
  struct BlockPages pages;
  touched_clear(&pages, bytes, 0);
  pages.flags = block_discards;
  record_long_plain(&(struct Call){.kind = (enum Kind)record_pages, .address = begin, .pages = &pages}, NULL);
  if (block->address) touched_discarded(block);
}

// Describes the end of `taken`, and returns whether it is a large block. Records runs beyond those that one event
// holds.
static bool describe_end(struct Thread* self, const struct LargeBlock* taken, struct BlockPages* pages) {
  if (!taken->address) return false;
  must(taken->bytes != 0);
  touched_ends(&self->asking, taken);
  touched_clear(pages, 0, 0);
  if (taken->is_written)
    pages->runs = (struct PageRuns){.count = 1, .runs = {{.count = pages_of_block(taken->address, taken->bytes)}}};
  const bool is_known = taken->was_resident || taken->is_written || ask_about_all(self, taken, pages);
  pages->flags = block_ends | (is_known ? block_is_asked : 0);
  record_round(self);
  return true;
}

// A realloc of the block has failed, so that it lives on. No runs: the collector has taken the begin of the realloc for
// the block's end, and is to watch it again.
static void record_pages_refused(const struct LargeBlock* given) {
  if (!touched_lives_on(given) || !recording_is_on()) return;
  record_long_pages(given, &(struct BlockPages){.bytes = given->bytes, .since = stamp_of_label(&thread_self)});
  large_block_open((const void*)given->address);
}

// Whether the event makes or ends a large block whose pages are not described yet. An end: perhaps.
static bool needs_pages(const struct Call* call) {
  if (!large_blocks_min || call->pages) return false;
  if (kind_makes_block(call->kind)) return call->given || (call->address && call_bytes(call) >= large_blocks_min);
  return kind_ends_block(call->kind) && large_block_may_be(call->address);
}

// Returns whether there are any. The block is noted, or taken, in any case.
static bool describe_pages(struct Thread* self, const struct Call* call, struct BlockPages* pages) {
  if (!kind_makes_block(call->kind)) {
    const struct LargeBlock taken = large_block_take(call->address);
    return describe_end(self, &taken, pages);
  }
  if (call->address) {
    const struct LargeBlock begun = {
        .address = (uintptr_t)call->address, .bytes = call_bytes(call), .was_zeroed = call->kind == kind_calloc};
    // Not between the two events of a realloc, which follow each other in the ring.
    if (!(call->flags & slot_has_old_block)) record_round(self);
    return touched_begins(&self->asking, &begun, call->given, pages);
  }
  if (call_bytes(call) != 0) record_pages_refused(call->given);
  return false;
}

// A signal handler may have forked meanwhile: then this is the child, which has asked about its own memory, but may
// have to begin a ring.
static __attribute__((noinline)) void record_long_with_pages(const struct Call* call, const void* stack_frame) {
  struct BlockPages pages;
  struct Call with = *call;
  if (describe_pages(&thread_self, call, &pages)) with.pages = &pages;
  if (recording_is_on()) record_long_plain(&with, stack_frame);
  if (with.pages && kind_makes_block(call->kind)) large_block_open(call->address);
}

void record_long(const struct Call* call, const void* stack_frame) {
  if (__builtin_expect(needs_pages(call), 0))
    record_long_with_pages(call, stack_frame);
  else
    record_long_plain(call, stack_frame);
}

struct LargeBlock record_long_pages_begin(const void* block) {
  struct BlockPages pages;
  const struct LargeBlock taken = large_block_take(block);
  struct Call call = {.kind = (enum Kind)record_realloc_begin, .address = block};
  if (describe_end(&thread_self, &taken, &pages)) call.pages = &pages;
  if (recording_is_on()) record_long_plain(&call, NULL);
  return taken;
}

void record_long_label(enum Kind kind, const char* label) {
  char text[label_bytes_max + 1] = {0};
  memcpy(text, label, strnlen(label, label_bytes_max));
  make_utf8(text, strlen(text));
  record_long_plain(&(struct Call){.kind = kind, .label = text}, NULL);
}

static struct Call call_of(uint32_t kind, const void* address, uint64_t size) {
  must((kind & ~(uint32_t)(slot_kind_mask | slot_has_old_block | slot_pool_mask)) == 0);
  return (struct Call){
      .kind = slot_kind(kind), .flags = kind & ~(uint32_t)slot_kind_mask, .address = address, .size = size};
}

__attribute__((noinline)) void record_long_short(uint32_t kind, const void* address, uint64_t size,
                                                 const void* stack_frame) {
  const struct Call call = call_of(kind, address, size);
  record_long(&call, stack_frame);
}

void record_short_again(struct Ring* ring, uint32_t generation, uint64_t position, uint32_t kind, const void* address,
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
  const uint64_t least = self->ring == ring ? self->stamp_floor : coarse_stamp(self);
  const struct Call call = call_of(kind, address, size);
  append_event(self, &call, stamp > least ? stamp : least);
}

static __attribute__((noinline)) void record_short_noted(uint32_t kind, const void* block, uint64_t size,
                                                         uint64_t coarse) {
  record_short(kind, block, size, stamp_of_block(&thread_self, slot_kind(kind), block, size, coarse));
}

// Whether a coarse stamp is enough in a page of several rings. False: not known.
__attribute__((always_inline)) static inline bool is_kept(uint8_t owner, const void* block, uint64_t size,
                                                          bool is_allocation) {
  return __builtin_expect(is_allocation ? owners_have_pieces(owner, block, size) : owners_include(owner, block), 1);
}

__attribute__((always_inline)) static inline void record_short_true(uint32_t kind, const void* block, uint64_t size,
                                                                    uint64_t coarse, bool is_allocation) {
  if (__atomic_load_n(&stamping, __ATOMIC_RELAXED) == stamping_all)
    record_short(kind, block, size, clock_of_event());
  else if (is_kept(thread_self.owner, block, size, is_allocation))
    record_short(kind, block, size, coarse);
  else
    record_short_noted(kind, block, size, coarse);
}

void record_short_true_allocation(uint32_t kind, const void* block, uint64_t size, uint64_t coarse) {
  record_short_true(kind, block, size, coarse, true);
}

void record_short_true_release(uint32_t kind, const void* block, uint64_t size, uint64_t coarse) {
  record_short_true(kind, block, size, coarse, false);
}

void record_pool(uint32_t kind, const void* address, uint64_t size, const void* stack_frame) {
  if (stack_frame && stacks_are_of(slot_kind(kind)))
    record_short_stack(kind, address, size, stack_frame);
  else if (size >> 32)
    record_long_short(kind, address, size, NULL);
  else
    record_short(kind, address, size, stamp_of_pool(&thread_self));
}

static uint64_t stamp_of_short(const struct Thread* self, uint32_t kind, const void* block, uint64_t size) {
  if (__builtin_expect(kind_is_pools(slot_kind(kind)), 0)) return stamp_of_pool(self);
  const uint64_t coarse = coarse_stamp(self);
  if (__builtin_expect(is_coarse_enough(slot_kind(kind), block, size), 1)) return coarse;
  if (__atomic_load_n(&stamping, __ATOMIC_RELAXED) == stamping_all) return clock_of_event();
  if (is_kept(self->owner, block, size, kind_makes_block(slot_kind(kind)))) return coarse;
  return stamp_of_block(self, slot_kind(kind), block, size, coarse);
}

// An event of one record, and its stack, at `position`, which is reserved.
static __attribute__((noinline)) void record_short_stack_at(uint32_t kind, const void* address, uint64_t size,
                                                            uint64_t stamp, const struct HeldRing* held,
                                                            uint64_t position, struct EventStack* stack) {
  struct Thread* self = &thread_self;
  const enum Reservation reservation = ring_reservation(self, held, position, stack->slots + 1);
  if (reservation == reserved_nowhere) {
    stacks_drop(self, stack);
    stacks_end(self, stack);
    return;
  }
  const bool is_held = reservation == reserved_here;
  must(stack->slots == 0 || stack->slots == stack_slots(stack->head.added));
  if (is_held && is_stamp_high_known(self, stamp) && stack->generation == self->generation) {
    stacks_publish(self, stack, held, position);
    publish_short(held, position + stack->slots, kind, address, size, stamp);
    stacks_end(self, stack);
    return;
  }
  const struct Call call = call_of(kind, address, size);
  if (is_held) held_publish_void(held, position, stack->slots + 1);
  if (capture_again(self, stack)) append_with_stack(self, &call, stamp, stack);
}

// Records an event whose stack could not be captured quickly.
static __attribute__((noinline)) void record_short_stack_slowly(uint32_t kind, const void* address, uint64_t size,
                                                                const void* stack_frame, int kept,
                                                                uint32_t generation) {
  struct Thread* self = &thread_self;
  struct EventStack stack;
  if (!capture(self, stack_frame, kept, generation, &stack)) return;
  const uint64_t stamp = stamp_of_short(self, kind, address, size);
  struct HeldRing held = hold_ring(self);
  const uint64_t position = ring_reserve(&held, stack.slots + 1);
  record_short_stack_at(kind, address, size, stamp, &held, position, &stack);
}

static inline uint32_t frame_of_last(const struct Thread* self, const uint32_t* mixed, uint32_t number) {
  return mixed ? mixed[number] : unwind_frame_of_last(self->unwinder, (int32_t)number);
}

// The frames of the last stack that do not fit its first record.
static void publish_frames(const struct Thread* self, const uint32_t* mixed, const struct HeldRing* held,
                           uint32_t first, uint32_t end, uint64_t position) {
  for (; first < end; first += stack_frames_more) {
    uint32_t frames[stack_frames_more];
    for (uint32_t i = 0; i < stack_frames_more; i++) frames[i] = frame_of_last(self, mixed, first + i);
    const struct Slot slot = slot_of_frames(frames);
    held_publish(held, ++position, slot.head, slot.body);
  }
}

// The records of the last stack, which go on from those of the one before. `mixed`: as in EventStack.
__attribute__((always_inline)) static inline void publish_stack(struct Thread* self, const uint32_t* mixed,
                                                                const struct HeldRing* held, uint32_t kept,
                                                                uint32_t added, uint64_t position) {
  const struct StackRecord head = {kept, added, self->last_stack.number, self->last_stack.is_cut, false};
  uint32_t frames[stack_frames_first];
  // The reader ignores frames beyond `added`. A loop that ends there would be mispredicted.
  for (uint32_t i = 0; i < stack_frames_first; i++) frames[i] = frame_of_last(self, mixed, kept + i);
  const struct Slot slot = slot_of_stack(&head, frames);
  held_publish(held, position, slot.head, slot.body);
  if (added > stack_frames_first) publish_frames(self, mixed, held, kept + stack_frames_first, kept + added, position);
  self->last_stack.frames = kept + added;
  self->last_stack.number = (head.number + 1) % stack_numbers;
}

// Whether the last stack, which was captured in `generation`, can be recorded as a difference.
static inline bool is_followed(const struct Thread* self, uint32_t generation) {
  return self->last_stack.is_followed && self->last_stack.is_cut == self->unwinder->is_cut &&
         generation == recording_generation();
}

// Records an event with the last stack, in one reservation.
__attribute__((always_inline)) static inline void record_at_once(uint32_t kind, const void* address, uint64_t size,
                                                                 const void* stack_frame, const uint32_t* mixed,
                                                                 struct MixedStack now, uint32_t generation) {
  struct Thread* self = &thread_self;
  struct UnwindThread* unwinder = self->unwinder;
  const uint32_t kept = now.kept, frames = now.frames, added = frames - kept;
  must(kept <= frames && added <= stacks_frames_at_once);
  const uint32_t slots = added != 0 || frames != self->last_stack.frames ? stack_slots(added) : 0;
  const uint64_t stamp = stamp_of_short(self, kind, address, size);
  struct HeldRing held = hold_ring(self);
  const uint64_t position = ring_reserve(&held, slots + 1);
  const bool has_room = ring_is_below_soft(held.ring, position, slots + 1);
  if (__builtin_expect(has_room && is_stamp_high_known(self, stamp) && generation == recording_generation(), 1)) {
    if (slots) publish_stack(self, mixed, &held, kept, added, position);
    publish_short(&held, position + slots, kind, address, size, stamp);
    unwind_release(unwinder, stack_frame);
    return;
  }
  struct EventStack stack = {
      .frame = stack_frame,
      .captured = {(int32_t)kept, (int32_t)frames, unwinder->is_cut, false},
      .head = {kept, added, self->last_stack.number, unwinder->is_cut, false},
      .mixed = mixed,
      .slots = slots,
      .generation = generation,
  };
  record_short_stack_at(kind, address, size, stamp, &held, position, &stack);
}

// The same as record_short_stack() where the stack before had frames of an interpreter. `kept`: of the native ones.
static __attribute__((noinline)) void record_short_stack_mixed(uint32_t kind, const void* address, uint64_t size,
                                                               const void* stack_frame, int kept, uint32_t generation) {
  struct Thread* self = &thread_self;
  struct UnwindThread* unwinder = self->unwinder;
  if (__builtin_expect(is_followed(self, generation), 1)) {
    const struct UnwindStack native = {kept, unwinder->frames, unwinder->is_cut, false};
    const struct MixedStack mixed = frames_mix(unwinder->mixed, unwinder, &native, stack_frame);
    if (__builtin_expect(mixed.frames - mixed.kept <= stacks_frames_at_once && generation == recording_generation(),
                         1)) {
      record_at_once(kind, address, size, stack_frame, frames_of(unwinder->mixed), mixed, generation);
      return;
    }
    kept = 0;  // mixed once, so the next one has to be whole
  }
  record_short_stack_slowly(kind, address, size, stack_frame, kept, generation);
}

void record_short_stack(uint32_t kind, const void* address, uint64_t size, const void* stack_frame) {
  struct Thread* self = &thread_self;
  self->last_made = address;
  struct UnwindThread* unwinder = self->unwinder;
  if (__builtin_expect(!is_short(size), 0) || __builtin_expect(may_end_large(kind, address), 0)) {
    record_long_short(kind, address, size, stack_frame);
    return;
  }
  const uint32_t generation = self->generation;
  const int kept = __builtin_expect(unwinder != NULL, 1) ? unwind_capture_quickly(unwinder, stack_frame) : -1;
  // Once: a signal handler may switch to another stack, whose captures change it.
  const int all = kept < 0 ? 0 : __atomic_load_n(&unwinder->frames, __ATOMIC_RELAXED);
  const uint8_t extras = unwind_extras;
  if (kept >= 0 && extras == unwind_has_interpreter && self->last_stack.is_mixed)
    record_short_stack_mixed(kind, address, size, stack_frame, kept, generation);
  else if (__builtin_expect(kept < 0 || extras || self->last_stack.is_mixed || !is_followed(self, generation) ||
                                (uint32_t)(all - kept) > stacks_frames_at_once,
                            0))
    record_short_stack_slowly(kind, address, size, stack_frame, kept, generation);
  else
    record_at_once(kind, address, size, stack_frame, NULL, (struct MixedStack){(uint32_t)kept, (uint32_t)all},
                   generation);
}
