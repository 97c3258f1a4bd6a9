/// Which thread records alone, and so needs no clock. The rules, and why they hold, are in ring.h, "Alone".
#pragma once

#include "preload/record.h"

/// In a process that begins: nobody is.
void alone_begin_process(struct Control* control);
/// From here on a thread may be: no times are recorded.
void alone_allow(void);
/// Makes the calling thread the one, if no other has recorded anything since it last tried.
void alone_try(struct Thread* self);

/// Around each event of a thread that is not, from before its stamp is taken. One instruction each, because a signal
/// handler may come between.
static inline void among_others_begin(struct Ring* ring) {
  __asm__ volatile("incl %0" : "+m"(ring->busy) : : "memory", "cc");
  uint32_t alone = __atomic_load_n(&record_alone, __ATOMIC_RELAXED);
  if (alone) __atomic_compare_exchange_n(&record_alone, &alone, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}
static inline void among_others_end(struct Ring* ring) {
  __asm__ volatile("decl %0" : "+m"(ring->busy) : : "memory", "cc");
}
