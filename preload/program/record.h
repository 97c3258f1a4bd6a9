/// Recording an event (preload/protocol.h): the path that nearly every call takes, as inline functions, and the others
/// in record.c. The caller has asked recording_is_on() (lifecycle.h) before.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmt/kinds.h"
#include "preload/program/kernel.h"
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
};

/// In the frame of an interposed function (interpose.h).
struct Guard {
  uint64_t token;
  struct Guard* interrupted;  ///< of the function that a signal handler has interrupted, in which this one is called
  uint32_t kind;              ///< of operator new, else kind_malloc
  uint64_t size;
  uint64_t alignment;
};

/// A thread of the program. Zero at its birth, but for the generation, which must not be that of a forked child.
struct Thread {
  struct Guard* guard;  ///< of the outermost interposed function
  struct Slot* slots;
  struct Ring* ring;
  uint32_t number;           ///< in its process, from 1 on
  uint64_t lease_began;      ///< a stamp
  uint64_t others_reserved;  ///< positions that all other threads had reserved when it last tried to get the lease
  uint32_t generation;       ///< of the process in which `ring` is this thread's (tracing.h), or no_generation
  uint32_t stamp_high;       ///< upper bits of its last stamp
  uint64_t guards;           ///< for tokens
  const void* retry_caller;  ///< the return address of the malloc in an operator new that has failed
  struct Guard retry;        ///< of that operator new
  uint8_t has_destructor;    ///< whether its end will be noticed
  uint8_t destructor_rounds;
  uint32_t ringless;  ///< the generation in which there was no ring for it
};
enum { no_generation = 0x7fffffff };

extern __thread struct Thread thread_self HIDDEN;

/// A second thread has recorded, in this process or in one that it was forked from.
extern bool has_second_thread HIDDEN;
/// The real malloc_usable_size if each block's usable size is recorded, else NULL.
extern size_t (*record_usable)(void*) HIDDEN;
/// The number of the thread that holds the lease (preload/protocol.h), or 0.
extern uint32_t lease_holder HIDDEN;

/// In a process that begins: nobody holds the lease.
void lease_begin_process(struct Control* control);
/// From here on threads may get it: no times are recorded.
void lease_allow(void);
/// Gives the lease to the calling thread, if no other has recorded since it last tried.
void lease_try(struct Thread* self);

/// Records an event of one or several records.
void record_long(const struct Call* call);
/// Records an event of a thread without the lease. `kind`: with flags of the head.
void record_without_lease(uint32_t kind, const void* address, uint64_t size);
/// Records an event that may take several records. `kind`: with flags of the head.
void record_as_call(uint32_t kind, const void* address, uint64_t size);
/// The same for one that has reserved `position`, and is beyond `soft` or has a wrong stamp.
void record_again(uint64_t position, uint32_t kind, const void* address, uint64_t size);

static inline bool lease_is_held(const struct Thread* self) {
  return __atomic_load_n(&lease_holder, __ATOMIC_RELAXED) == self->number;
}

/// The stamp of an event of the holder.
static inline uint64_t lease_stamp(const struct Thread* self) {
  uint64_t told = __atomic_load_n(&self->ring->clock, __ATOMIC_RELAXED);
  return told > self->lease_began ? told : self->lease_began;
}

// Reserves `count` positions and returns the first. The thread sanitizer does not see into assembly: there it is an
// atomic.
static inline uint64_t ring_reserve(struct Ring* ring, uint64_t count) {
#ifdef CMT_SANITIZED
  return __atomic_fetch_add(&ring->reserved, count, __ATOMIC_RELAXED);
#else
  __asm__ volatile("xaddq %0, %1" : "+r"(count), "+m"(ring->reserved) : : "memory", "cc");
  return count;
#endif
}

/// Whether `limit` need not be read. The acquire orders the collector's reads of these slots before our writes. (Where
/// this thread has stored `soft` itself, in wait_for_room(), the acquire of `limit` there does.)
static inline bool ring_is_below_soft(const struct Ring* ring, uint64_t position, uint64_t count) {
  return position + count <= __atomic_load_n(&ring->soft, __ATOMIC_ACQUIRE);
}

static inline void ring_publish(const struct Thread* self, uint64_t position, uint64_t head, uint64_t body) {
  uint32_t slots = self->ring->slots;
  struct Slot* slot = &self->slots[position & (slots - 1)];
  slot->body = body;
  head |= slot_valid | (position & slots ? slot_parity : 0);
  __atomic_store_n(&slot->head, head, __ATOMIC_RELEASE);
}

static inline uint64_t head_of(uint32_t kind, const void* address) {
  return (uint64_t)address << slot_address_shift | kind;
}

/// Whether an event takes one record, unless the stamp's upper bits are new.
static inline bool is_short(uint64_t size) { return size >> 32 == 0 && !record_usable; }

/// Whether the stamp's upper bits are those of the ring. Valid once the position is reserved: a signal handler that
/// records other ones has done so before, and is seen, or does so behind.
static inline bool is_stamp_high_known(const struct Thread* self, uint64_t stamp) {
  return stamp >> 32 == self->stamp_high;
}

static inline void publish_short(const struct Thread* self, uint64_t position, uint32_t kind, const void* address,
                                 uint64_t size, uint64_t stamp) {
  ring_publish(self, position, head_of(kind, address), size << 32 | (uint32_t)stamp);
}

/// Records an event. `kind`: with flags of the head. Inlined, because a call would cost each event a few ns.
__attribute__((always_inline)) static inline void record(uint32_t kind, const void* address, uint64_t size) {
  struct Thread* self = &thread_self;
  if (!lease_is_held(self)) {
    record_without_lease(kind, address, size);
    return;
  }
  uint64_t stamp = lease_stamp(self);
  if (__builtin_expect(!is_short(size), 0)) {
    record_as_call(kind, address, size);
    return;
  }
  uint64_t position = ring_reserve(self->ring, 1);
  if (__builtin_expect(
          ring_is_below_soft(self->ring, position, 1) && lease_is_held(self) && is_stamp_high_known(self, stamp), 1))
    publish_short(self, position, kind, address, size, stamp);
  else
    record_again(position, kind, address, size);
}
