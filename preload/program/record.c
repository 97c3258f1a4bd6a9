// Events beyond the path in record.h: of a thread without the lease, and of several records. And who holds the lease.
#include "preload/program/record.h"

#include <linux/membarrier.h>
#include <string.h>

#include "preload/program/tracing.h"

enum { lease_rings_max = 64 };

__thread struct Thread thread_self = {.generation = no_generation};
bool has_second_thread;
size_t (*record_usable)(void*);
uint32_t lease_holder;

static struct {
  struct Control* control;
  bool is_possible;  // the kernel can run a barrier on all threads
  bool is_allowed;
} lease;

void lease_begin_process(struct Control* control) {
  lease_holder = 0;
  lease.control = control;
  lease.is_possible = sys(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void lease_allow(void) { lease.is_allowed = true; }

struct OtherThreads {
  uint64_t reserved;
  bool are_busy;  // one may be within an event
};

static struct OtherThreads read_other_rings(const struct Thread* self) {
  struct OtherThreads others = {0, false};
  uint32_t used = __atomic_load_n(&lease.control->rings_used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < used && i < lease.control->rings_limit; i++) {
    struct Ring* ring = ring_at(lease.control, i);
    if (ring == self->ring) continue;
    const uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    const uint64_t reserved = __atomic_load_n(&ring->reserved, __ATOMIC_RELAXED);
    others.are_busy |= tail != reserved || __atomic_load_n(&ring->busy, __ATOMIC_RELAXED) != 0;
    others.reserved += reserved;
  }
  return others;
}

static void replace_holder(uint32_t expected, uint32_t next) {
  __atomic_compare_exchange_n(&lease_holder, &expected, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void begin_lease(struct Thread* self) {
  replace_holder(0, self->number);
  if (!lease_is_held(self)) return;
  sys(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  const struct OtherThreads others = read_other_rings(self);
  self->lease_began = clock_stamp(true) + 1;
  if (others.are_busy || others.reserved != self->others_reserved)
    replace_holder(self->number, 0);
  else
    __atomic_fetch_add(&lease.control->leases, 1, __ATOMIC_RELAXED);
}

void lease_try(struct Thread* self) {
  if (!lease.is_possible || !lease.is_allowed || sandbox_entered || lease_is_held(self)) return;
  if (__atomic_load_n(&lease.control->rings_used, __ATOMIC_RELAXED) > lease_rings_max) return;
  const struct OtherThreads others = read_other_rings(self);
  if (others.reserved == self->others_reserved && !others.are_busy) {
    uint64_t before;
    block_signals(&before);  // a handler's event would have the stamp of an earlier lease
    begin_lease(self);
    restore_signals(&before);
  }
  self->others_reserved = others.reserved;
}

// Before the stamp of an event is taken, by a thread without the lease.
static inline void revoke_lease(void) {
  uint32_t holder = __atomic_load_n(&lease_holder, __ATOMIC_RELAXED);
  if (holder) replace_holder(holder, 0);
}

// Around an event, from before the thread reads lease_holder: no other thread gets the lease meanwhile. One instruction
// each, because a signal handler may come between.
#ifdef CMT_SANITIZED
static inline void enter_event(struct Ring* ring) { __atomic_fetch_add(&ring->busy, 1, __ATOMIC_RELAXED); }
static inline void leave_event(struct Ring* ring) { __atomic_fetch_sub(&ring->busy, 1, __ATOMIC_RELAXED); }
#else
static inline void enter_event(struct Ring* ring) { __asm__ volatile("incl %0" : "+m"(ring->busy) : : "memory", "cc"); }
static inline void leave_event(struct Ring* ring) { __asm__ volatile("decl %0" : "+m"(ring->busy) : : "memory", "cc"); }
#endif

/// The records of one event.
struct Batch {
  uint64_t count;
  struct Slot slots[label_bytes_max / piece_bytes + 8];
};

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

static void compose(struct Batch* batch, const struct Call* call, uint64_t stamp, uint32_t stamp_high) {
  uint64_t head = head_of(call->kind, call->address) | call->flags;
  batch->count = 0;
  if (stamp >> 32 != stamp_high) append_value(batch, record_stamp_high, stamp >> 32);
  if (call->has_count) append_value(batch, record_count, call->count);
  if (call->size >> 32) append_value(batch, record_size, call->size);
  if (call->alignment && fits_bits(call->alignment)) head |= alignment_bits(call->alignment);
  if (call->alignment && !fits_bits(call->alignment)) append_value(batch, record_alignment, call->alignment);
  if (call->label) append_label(batch, call->label);
  if (record_usable && call->address && (kind_traits(call->kind) & cmt_allocates))
    append_value(batch, record_usable_size, record_usable((void*)(uintptr_t)call->address));
  batch->slots[batch->count++] = (struct Slot){head, call->size << 32 | (uint32_t)stamp};
}

static __attribute__((noinline)) bool make_room(struct Thread* self, uint64_t position, uint64_t count) {
  if (!wait_for_room(self->ring, position, count)) return false;
  lease_try(self);
  return true;
}

static bool has_room(struct Thread* self, uint64_t position, uint64_t count) {
  return __builtin_expect(ring_is_below_soft(self->ring, position, count), 1) || make_room(self, position, count);
}

// False if a signal handler has recorded other upper bits of stamps before the positions were reserved: the slots are
// void, and the event is to be recorded anew.
static bool append_records(struct Thread* self, const struct Call* call) {
  struct Batch batch;
  bool has_lease = lease_is_held(self);
  if (!has_lease) revoke_lease();
  uint64_t stamp = has_lease ? lease_stamp(self) : clock_stamp(__atomic_load_n(&has_second_thread, __ATOMIC_RELAXED));
  uint32_t stamp_high = self->stamp_high;
  compose(&batch, call, stamp, stamp_high);
  uint64_t position = ring_reserve(self->ring, batch.count);
  if (!has_room(self, position, batch.count)) return true;
  const bool is_true = self->stamp_high == stamp_high;
  if (is_true) self->stamp_high = (uint32_t)(stamp >> 32);
  for (uint64_t i = 0; i < batch.count; i++) {
    struct Slot slot = is_true ? batch.slots[i] : (struct Slot){record_void, 0};
    ring_publish(self, position + i, slot.head, slot.body);
  }
  return is_true;
}

void record_long(const struct Call* call) {
  struct Thread* self = &thread_self;
  enter_event(self->ring);
  while (!append_records(self, call)) continue;
  leave_event(self->ring);
}

__attribute__((noinline)) void record_as_call(uint32_t kind, const void* address, uint64_t size) {
  record_long(
      &(struct Call){.kind = slot_kind(kind), .flags = kind & slot_has_old_block, .address = address, .size = size});
}

void record_again(uint64_t position, uint32_t kind, const void* address, uint64_t size) {
  struct Thread* self = &thread_self;
  if (!has_room(self, position, 1)) return;
  ring_publish(self, position, record_void, 0);
  record_as_call(kind, address, size);
}

// A set of bits, since a table would cost the program a cache line.
static bool ends_block(uint32_t kind) {
  kind &= slot_kind_mask;
  if (kind >= cmt_kind_limit) return kind == record_realloc_begin;
#define CMT_KIND(name, number, call, traits) \
  | (uint64_t)(((traits) & (cmt_releases | cmt_allocates)) == cmt_releases) << number
  return ((0ull CMT_KINDS(CMT_KIND)) >> kind & 1) != 0;
#undef CMT_KIND
}

void record_without_lease(uint32_t kind, const void* address, uint64_t size) {
  struct Thread* self = &thread_self;
  struct Ring* ring = self->ring;
  enter_event(ring);
  revoke_lease();
  uint64_t stamp = clock_stamp(ends_block(kind) && __atomic_load_n(&has_second_thread, __ATOMIC_RELAXED));
  if (__builtin_expect(is_short(size), 1)) {
    uint64_t position = ring_reserve(ring, 1);
    if (__builtin_expect(!is_stamp_high_known(self, stamp), 0))
      record_again(position, kind, address, size);
    else if (has_room(self, position, 1))
      publish_short(self, position, kind, address, size, stamp);
  } else {
    record_as_call(kind, address, size);
  }
  leave_event(ring);
}
