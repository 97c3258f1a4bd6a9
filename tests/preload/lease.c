// Whether a thread gets the lease, beside another thread's ring in several states (preload/protocol.h, "The lease").
#include <assert.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "preload/program/record.h"
#include "preload/program/tracing.h"

bool clock_is_slow, sandbox_entered;
uint64_t clock_slow_stamp(void) { return 0; }
bool wait_for_room(struct Ring* ring, uint64_t position, uint64_t count) { return ring && position == count; }

static alignas(128) char memory[1 << 16];

// With the other ring in this state at both attempts.
static bool gets_lease(struct Ring other) {
  struct Control* control = (struct Control*)memory;
  struct Thread self = {.number = 1, .ring = ring_at(control, 0)};
  control->rings_used = control->rings_limit = 2;
  *ring_at(control, 1) = other;
  lease_begin_process(control);
  lease_try(&self);  // the first attempt notes how much the other has recorded
  lease_try(&self);
  return lease_is_held(&self);
}

int main(void) {
  assert(rings_control_bytes(2) <= sizeof memory);
  assert(!gets_lease((struct Ring){.reserved = 10, .tail = 10}));  // times are recorded
  lease_allow();
  if (!gets_lease((struct Ring){.reserved = 10, .tail = 10})) {
    puts("skipped: the kernel has no membarrier");
    return 0;
  }
  assert(!gets_lease(
      (struct Ring){.reserved = 10, .tail = 10, .busy = 1}));     // between its check of the lease and its record
  assert(!gets_lease((struct Ring){.reserved = 10, .tail = 9}));  // the same, of a thread that held the lease
  assert(!gets_lease((struct Ring){.reserved = 10, .tail = 9, .busy = 1}));
  return 0;
}
