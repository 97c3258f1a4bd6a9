/// Composes the records of one event of several slots, for record.c, into which it is inlined. The ring's reader
/// expects the event itself last (preload/protocol.h, "Records").
#pragma once

#include <string.h>

#include "preload/program/record.h"

/// The records of one event.
struct Batch {
  uint64_t count;
  struct Slot slots[label_bytes_max / piece_bytes + 8];
};

static inline uint64_t bytes_of(const struct Call* call) {
  return call->has_count ? call->size * call->count : call->size;
}

static inline void append_value(struct Batch* batch, uint32_t kind, uint64_t value) {
  batch->slots[batch->count++] = (struct Slot){kind, value};
}

static inline void append_label(struct Batch* batch, const char* label) {
  size_t length = strnlen(label, label_bytes_max);
  for (size_t at = 0; at < length; at += piece_bytes) {
    size_t piece = length - at < piece_bytes ? length - at : piece_bytes;
    batch->slots[batch->count++] = slot_of_piece(label + at, piece);
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
  batch->slots[batch->count++] =
      (struct Slot){head_of(record_block, call->address), pages->bytes << block_bytes_shift | pages->flags};
  for (uint32_t i = 0; i < pages->runs.count; i++) {
    const struct PageRun* run = &pages->runs.runs[i];
    batch->slots[batch->count++] = slot_of_page_run(run->first, run->count, run->is_unsure, false);
  }
}

/// Composes the records of `call`. `stamp_high`: the upper bits of stamps that the ring's reader knows.
static inline void compose(struct Batch* batch, const struct Call* call, uint64_t stamp, uint32_t stamp_high) {
  must((uint32_t)call->kind <= slot_kind_mask && (call->flags & ~(uint32_t)slot_has_old_block) == 0);
  uint64_t head = head_of(call->kind, call->address) | call->flags;
  batch->count = 0;
  if (stamp >> 32 != stamp_high) append_value(batch, record_stamp_high, stamp >> 32);
  if (call->pages) append_pages(batch, call);
  if (call->has_count) append_value(batch, record_count, call->count);
  if (call->size >> 32) append_value(batch, record_size, call->size);
  if (call->alignment && fits_bits(call->alignment)) head |= alignment_bits(call->alignment);
  if (call->alignment && !fits_bits(call->alignment)) append_value(batch, record_alignment, call->alignment);
  if (call->label) append_label(batch, call->label);
  if (usable_size_of && call->address && (kind_traits(call->kind) & cmt_allocates))
    append_value(batch, record_usable_size, usable_size_of((void*)(uintptr_t)call->address));
  batch->slots[batch->count++] = (struct Slot){head, call->size << 32 | (uint32_t)stamp};
  must(batch->count <= sizeof batch->slots / sizeof *batch->slots);
}
