#include "preload/program/alone.h"

#include <linux/membarrier.h>

#include "preload/program/sandbox.h"
#include "preload/program/sys.h"

enum { rings_max_looked_at = 64 };

uint32_t lease_holder;

static struct {
  struct Control* control;
  bool is_possible;  // the kernel puts a fence into all threads
  bool is_allowed;
} state;

void alone_begin_process(struct Control* control) {
  lease_holder = 0;
  state.control = control;
  state.is_possible = sys(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void alone_allow(void) { state.is_allowed = true; }

struct Others {
  uint64_t reserved;
  bool busy;  // somebody may be at an event
};

static struct Others look_at_others(const struct Thread* self) {
  struct Others others = {0, false};
  uint32_t used = __atomic_load_n(&state.control->rings_used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < used && i < state.control->rings_limit; i++) {
    struct Ring* ring = ring_at(state.control, i);
    if (ring == self->ring) continue;
    const uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    const uint64_t reserved = __atomic_load_n(&ring->reserved, __ATOMIC_RELAXED);
    others.busy |= tail != reserved || __atomic_load_n(&ring->busy, __ATOMIC_RELAXED) != 0;
    others.reserved += reserved;
  }
  return others;
}

static void begin(struct Thread* self) {
  uint32_t nobody = 0, own = self->number;
  if (!__atomic_compare_exchange_n(&lease_holder, &nobody, own, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return;
  sys(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  const struct Others others = look_at_others(self);
  self->lease = record_clock(true) + 1;
  if (others.busy || others.reserved != self->others) {
    __atomic_compare_exchange_n(&lease_holder, &own, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
  } else {
    __atomic_fetch_add(&state.control->leases, 1, __ATOMIC_RELAXED);
  }
}

void alone_try(struct Thread* self) {
  if (!state.is_possible || !state.is_allowed || sandbox_entered || record_is_alone(self)) return;
  if (__atomic_load_n(&state.control->rings_used, __ATOMIC_RELAXED) > rings_max_looked_at) return;
  const struct Others others = look_at_others(self);
  if (others.reserved == self->others && !others.busy) {
    uint64_t before;
    block_signals(&before);  // a handler's event would have the stamp of an earlier lease
    begin(self);
    restore_signals(&before);
  }
  self->others = others.reserved;
}
