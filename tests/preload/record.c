// Whether each record has the stamp of its own event, where a signal handler or a full ring comes between, and also
// where the upper bits of stamps change meanwhile (preload/protocol.h, "Stamps"). The handler comes after each single
// instruction.
#include <assert.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "preload/program/record.h"
#include "preload/program/tracing.h"
#include "tests/preload/single_step.h"

enum { slots_in_ring = 64 };

bool clock_is_slow = true, sandbox_entered;

static alignas(128) struct Ring ring;
static struct Slot slots[slots_in_ring];
static const uint64_t before = 0x2fffff000;
static uint64_t after, now;
static bool drops;

uint64_t clock_slow_stamp(void) { return now; }

static size_t usable(void* block) { return (uintptr_t)block; }

bool wait_for_room(struct Ring* full, uint64_t position, uint64_t count) {
  full->soft = position + count + slots_in_ring;
  if (!drops) return true;
  drops = false;
  full->reserved = position;
  return false;
}

static void begin(bool has_lease) {
  memset(slots, 0, sizeof slots);
  ring = (struct Ring){.slots = slots_in_ring, .soft = slots_in_ring};
  thread_self =
      (struct Thread){.number = 1, .ring = &ring, .slots = slots, .lease_began = before, .stamp_high = before >> 32};
  lease_holder = has_lease;
  now = before;
}

// The events of one block in the ring.
struct Seen {
  int events;
  uint64_t position, stamp;
};

static void read_ring(struct Seen* seen, size_t blocks) {
  uint64_t stamp_high = before >> 32;
  memset(seen, 0, blocks * sizeof *seen);
  for (uint64_t at = 0; at < ring.reserved; at++) {
    const struct Slot slot = slots[at];
    const uint32_t kind = slot_kind(slot.head);
    const uint64_t block = slot.head >> slot_address_shift;
    assert((slot.head & slot_valid) != 0);
    if (kind == record_stamp_high) stamp_high = slot.body;
    if (kind >= record_stamp_high) continue;
    assert(block < blocks);
    seen[block] = (struct Seen){seen[block].events + 1, at, stamp_high << 32 | (uint32_t)slot.body};
  }
}

enum { block_of_handler = 1, block_of_thread, block_behind, blocks };

static void short_event(uintptr_t block) { record(kind_malloc, (void*)block, 8); }
static void long_event(uintptr_t block) {
  record_long(&(struct Call){.kind = kind_calloc, .address = (void*)block, .size = 8, .has_count = true, .count = 2});
}

// Handlers that take longer than stamp_slack.
static void handler_without_lease(void) {
  now = after;
  short_event(block_of_handler);
}
static void handler_with_lease(void) {
  __atomic_store_n(&ring.clock, after, __ATOMIC_RELAXED);
  handler_without_lease();
}
static void handler_of_revoked_lease(void) {
  __atomic_store_n(&lease_holder, 0, __ATOMIC_RELAXED);
  handler_without_lease();
}

static volatile long steps_left;
static void (*handler)(void);

static void at_step(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  if (steps_left-- != 0) return;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
  handler();
}

// Whether the handler came before the end of the event.
static bool run(void (*event)(uintptr_t), bool has_lease, void (*handle)(void), long steps) {
  begin(has_lease);
  handler = handle;
  steps_left = steps;
  set_trap(trap_flag);
  event(block_of_thread);
  set_trap(0);
  if (steps_left >= 0) return false;
  short_event(block_behind);
  struct Seen seen[blocks];
  read_ring(seen, blocks);
  const struct Seen own = seen[block_of_thread];
  for (int i = block_of_handler; i < blocks; i++) assert(seen[i].events == 1);
  if ((own.stamp != before && own.stamp != after) || seen[block_of_handler].stamp != after ||
      seen[block_behind].stamp != after) {
    fprintf(stderr, "after instruction %ld: stamps %llx, %llx, %llx\n", steps, (unsigned long long)own.stamp,
            (unsigned long long)seen[block_of_handler].stamp, (unsigned long long)seen[block_behind].stamp);
    assert(false);
  }
  // A thread that has lost the lease, and has not raised `busy`, sees that when its position is reserved.
  if (handle == handler_of_revoked_lease && event == short_event && !record_usable)
    assert(own.stamp == after || own.position < seen[block_of_handler].position);
  return true;
}

static void run_all(void (*event)(uintptr_t), bool has_lease, void (*handle)(void)) {
  long steps = 0;
  while (run(event, has_lease, handle, steps)) steps++;
  assert(steps > 10);
}

static void run_kinds(bool has_lease, void (*handle)(void)) {
  run_all(short_event, has_lease, handle);
  run_all(long_event, has_lease, handle);
  record_usable = usable;
  run_all(short_event, has_lease, handle);
  record_usable = NULL;
}

// A dropped event does not take the upper bits of stamps with it.
static void drop(void) {
  struct Seen seen[blocks];
  begin(false);
  now = after;
  ring.soft = 0;
  drops = true;
  record_again(ring_reserve(&ring, 1), kind_malloc, (void*)block_of_thread, 8);
  short_event(block_behind);
  read_ring(seen, blocks);
  assert(seen[block_of_thread].events == 0 && seen[block_behind].events == 1 && seen[block_behind].stamp == after);
}

// An event of another thread revokes the lease.
static void end_lease(void (*event)(uintptr_t)) {
  begin(false);
  lease_holder = 2;
  event(block_of_thread);
  assert(lease_holder == 0);
}

int main(void) {
  sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = at_step, .sa_flags = SA_SIGINFO}, NULL);
  for (int has_new_high = 0; has_new_high < 2; has_new_high++) {
    after = has_new_high ? 0x300000500 : 0x2fffff700;
    run_kinds(false, handler_without_lease);
    run_kinds(true, handler_with_lease);
    run_kinds(true, handler_of_revoked_lease);
  }
  end_lease(short_event);
  end_lease(long_event);
  drop();
  return 0;
}
