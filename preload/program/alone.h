/// Which thread records alone, and so needs no clock. The rules, and why they hold, are in preload/protocol.h, "The
/// lease".
#pragma once

#include "preload/program/record.h"

/// In a process that begins: nobody is.
void alone_begin_process(struct Control* control);
/// From here on a thread may be: no times are recorded.
void alone_allow(void);
/// Makes the calling thread the one, if no other has recorded anything since it last tried.
void alone_try(struct Thread* self);

/// Around an event, from before the thread looks whether it is alone: nobody else begins to be. One instruction each,
/// because a signal handler may come between.
#ifdef CMT_SANITIZED
static inline void busy_begin(struct Ring* ring) { __atomic_fetch_add(&ring->busy, 1, __ATOMIC_RELAXED); }
static inline void busy_end(struct Ring* ring) { __atomic_fetch_sub(&ring->busy, 1, __ATOMIC_RELAXED); }
#else
static inline void busy_begin(struct Ring* ring) { __asm__ volatile("incl %0" : "+m"(ring->busy) : : "memory", "cc"); }
static inline void busy_end(struct Ring* ring) { __asm__ volatile("decl %0" : "+m"(ring->busy) : : "memory", "cc"); }
#endif

/// Nobody is alone any more. Before the stamp of an event is taken that is not of who is.
static inline void alone_end(void) {
  uint32_t alone = __atomic_load_n(&lease_holder, __ATOMIC_RELAXED);
  if (alone) __atomic_compare_exchange_n(&lease_holder, &alone, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}
