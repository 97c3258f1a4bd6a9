// Of a thread that would record alone, beside another one's ring: whether it begins to (preload/protocol.h, "The
// lease").
#include <assert.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "preload/program/alone.h"

__thread struct Thread thread_self;
bool record_clock_is_ns, record_second_thread, record_usable, sandbox_entered;
uint32_t record_state[1024];
uint64_t record_slow_clock(void) { return 0; }

static alignas(128) char memory[1 << 16];

// With its ring as it is, and as it stays from one look to the next.
static bool begins(struct Ring other) {
  struct Control* control = (struct Control*)memory;
  struct Thread self = {.number = 1, .ring = ring_at(control, 0)};
  control->rings_used = control->rings_limit = 2;
  *ring_at(control, 1) = other;
  alone_begin_process(control);
  alone_try(&self);  // what it sees first is what the other has done since
  alone_try(&self);
  return record_is_alone(&self);
}

int main(void) {
  assert(rings_control_bytes(2) <= sizeof memory);
  assert(!begins((struct Ring){.reserved = 10, .tail = 10}));  // not before it is allowed
  alone_allow();
  if (!begins((struct Ring){.reserved = 10, .tail = 10})) {
    puts("skipped: the kernel has no membarrier");
    return 0;
  }
  assert(!begins((struct Ring){.reserved = 10, .tail = 10, .busy = 1}));  // between its look and its record
  assert(!begins((struct Ring){.reserved = 10, .tail = 9}));              // the same, alone itself when it looked
  assert(!begins((struct Ring){.reserved = 10, .tail = 9, .busy = 1}));
  return 0;
}
