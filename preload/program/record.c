// Appending what is more than the path in record.h: an event with other threads at work, or one of several records.
#include <string.h>

#include "preload/program/alone.h"
#include "preload/program/real.h"
#include "preload/program/record.h"

enum { label_piece = 14 };

/// The records of one event.
struct Batch {
  uint64_t count;
  struct Slot slots[label_bytes_max / label_piece + 8];
};

static void add(struct Batch* batch, uint32_t kind, uint64_t value) {
  batch->slots[batch->count++] = (struct Slot){kind, value};
}

static void add_label(struct Batch* batch, const char* label) {
  size_t length = strnlen(label, label_bytes_max);
  for (size_t at = 0; at < length; at += label_piece) {
    size_t piece = length - at < label_piece ? length - at : label_piece;
    struct Slot slot = {record_piece | piece << slot_alignment_shift, 0};
    char text[16] = {0};
    memcpy(text, label + at, piece);
    memcpy((char*)&slot.head + 2, text, 6);
    memcpy(&slot.body, text + 6, 8);
    batch->slots[batch->count++] = slot;
  }
}

static uint64_t alignment_bits(uint64_t alignment) {
  return (uint64_t)(__builtin_ctzll(alignment) + 1) << slot_alignment_shift;
}

static bool fits_bits(uint64_t alignment) { return (alignment & (alignment - 1)) == 0 && alignment >> 62 == 0; }

static bool allocates(uint32_t kind) {
  return kind == kind_malloc || (kind >= kind_calloc && kind <= kind_pvalloc) ||
         (kind >= kind_operator_new && kind <= kind_operator_new_array_nothrow);
}

static void compose(struct Batch* batch, const struct Call* call, uint64_t stamp, uint32_t epoch) {
  uint64_t head = record_head(call->kind, call->address) | call->flags;
  batch->count = 0;
  if (stamp >> 32 != epoch) add(batch, record_stamp_high, stamp >> 32);
  if (call->has_count) add(batch, record_count, call->count);
  if (call->size >> 32) add(batch, record_size, call->size);
  if (call->alignment && fits_bits(call->alignment)) head |= alignment_bits(call->alignment);
  if (call->alignment && !fits_bits(call->alignment)) add(batch, record_alignment, call->alignment);
  if (call->label) add_label(batch, call->label);
  if (record_usable && call->address && allocates(call->kind) && real.malloc_usable_size) {
    add(batch, record_usable_size, real.malloc_usable_size((void*)(uintptr_t)call->address));
  }
  batch->slots[batch->count++] = (struct Slot){head, call->size << 32 | (uint32_t)stamp};
}

static bool has_place(struct Ring* ring, uint64_t at, uint64_t count) {
  return __builtin_expect(record_is_below_soft(ring, at, count), 1) || record_wait(ring, at, count);
}

// False where a signal handler has begun an epoch before the places were reserved. They are void then.
static bool append(struct Thread* self, const struct Call* call) {
  struct Batch batch;
  bool alone = record_is_alone(self);
  if (!alone) alone_end();
  uint64_t stamp = alone ? record_lease(self) : record_clock(record_has_threads());
  uint32_t epoch = self->epoch;
  compose(&batch, call, stamp, epoch);
  uint64_t at = record_reserve(self->ring, batch.count);
  if (!has_place(self->ring, at, batch.count)) return true;
  const bool is_true = self->epoch == epoch;
  if (is_true) self->epoch = (uint32_t)(stamp >> 32);
  for (uint64_t i = 0; i < batch.count; i++) {
    struct Slot slot = is_true ? batch.slots[i] : (struct Slot){record_void, 0};
    record_publish(self, at + i, slot.head, slot.body);
  }
  return is_true;
}

void record_long(const struct Call* call) {
  struct Thread* self = &thread_self;
  busy_begin(self->ring);
  while (!append(self, call)) continue;
  busy_end(self->ring);
}

__attribute__((noinline)) void record_plainly(uint32_t kind, const void* address, uint64_t size) {
  record_long(&(struct Call){
      .kind = kind & slot_kind_mask, .flags = kind & slot_has_old_block, .address = address, .size = size});
}

// The thread has to wait, or its stamp has become wrong: another thread has ended that this one is alone, or a signal
// handler has begun an epoch.
void record_anew(uint64_t at, uint32_t kind, const void* address, uint64_t size) {
  struct Thread* self = &thread_self;
  if (!has_place(self->ring, at, 1)) return;
  record_publish(self, at, record_void, 0);
  record_plainly(kind, address, size);
}

void record_among_others(uint32_t kind, const void* address, uint64_t size) {
  struct Thread* self = &thread_self;
  struct Ring* ring = self->ring;
  busy_begin(ring);
  alone_end();
  uint64_t stamp = record_clock(record_ends_block(kind) && record_has_threads());
  if (__builtin_expect(record_is_short(size), 1)) {
    uint64_t at = record_reserve(ring, 1);
    if (__builtin_expect(!record_is_of_epoch(self, stamp), 0))
      record_anew(at, kind, address, size);
    else if (has_place(ring, at, 1))
      record_put(self, at, kind, address, size, stamp);
  } else {
    record_plainly(kind, address, size);
  }
  busy_end(ring);
}
