// Of what a thread appends, where a signal handler or a full ring comes between: that each record's stamp is its own,
// also where the upper bits of stamps change meanwhile (preload/protocol.h, "Stamps"). The handler comes after
// each single instruction.
#define _GNU_SOURCE
#include <assert.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "preload/program/alone.h"
#include "preload/program/real.h"
#include "tests/preload/single_step.h"

enum { places = 64 };

__thread struct Thread thread_self;
bool record_clock_is_ns = true, record_second_thread, record_usable, sandbox_entered;
uint32_t record_state[1024];
struct Real real;

static alignas(128) struct Ring ring;
static struct Slot slots[places];
static const uint64_t before = 0x2fffff000;
static uint64_t after, now;
static bool drops;

uint64_t record_slow_clock(void) { return now; }

static size_t usable(void* block) { return (uintptr_t)block; }

bool record_wait(struct Ring* full, uint64_t at, uint64_t count) {
  full->soft = at + count + places;
  if (!drops) return true;
  drops = false;
  full->reserved = at;
  return false;
}

static void begin(bool alone) {
  memset(slots, 0, sizeof slots);
  ring = (struct Ring){.slots = places, .soft = places};
  thread_self = (struct Thread){.number = 1, .ring = &ring, .slots = slots, .lease = before, .epoch = before >> 32};
  lease_holder = alone;
  now = before;
}

// What the ring has of each block.
struct Seen {
  int events;
  uint64_t place, stamp;
};

static void read_ring(struct Seen* seen, size_t blocks) {
  uint64_t epoch = before >> 32;
  memset(seen, 0, blocks * sizeof *seen);
  for (uint64_t at = 0; at < ring.reserved; at++) {
    const struct Slot slot = slots[at];
    const uint32_t kind = slot_kind(slot.head);
    const uint64_t block = slot.head >> slot_address_shift;
    assert((slot.head & slot_valid) != 0);
    if (kind == record_stamp_high) epoch = slot.body;
    if (kind >= record_stamp_high) continue;
    assert(block < blocks);
    seen[block] = (struct Seen){seen[block].events + 1, at, epoch << 32 | (uint32_t)slot.body};
  }
}

enum { block_of_handler = 1, block_of_thread, block_behind, blocks };

static void short_event(uintptr_t block) { record(kind_malloc, (void*)block, 8); }
static void long_event(uintptr_t block) {
  record_long(&(struct Call){.kind = kind_calloc, .address = (void*)block, .size = 8, .has_count = true, .count = 2});
}

// Handlers that take longer than stamps are ever early by.
static void handler_among_others(void) {
  now = after;
  short_event(block_of_handler);
}
static void handler_alone(void) {
  __atomic_store_n(&ring.clock, after, __ATOMIC_RELAXED);
  handler_among_others();
}
static void handler_no_more_alone(void) {
  __atomic_store_n(&lease_holder, 0, __ATOMIC_RELAXED);
  handler_among_others();
}

static volatile long steps_left;
static void (*handler)(void);

static void at_step(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  if (steps_left-- != 0) return;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
  handler();
}

// Whether the handler came; it has not where the event was over before.
static bool run(void (*event)(uintptr_t), bool alone, void (*handle)(void), long steps) {
  begin(alone);
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
  // Who is no more alone and has not raised `busy` sees that when its place is reserved.
  if (handle == handler_no_more_alone && event == short_event && !record_usable)
    assert(own.stamp == after || own.place < seen[block_of_handler].place);
  return true;
}

static void run_all(void (*event)(uintptr_t), bool alone, void (*handle)(void)) {
  long steps = 0;
  while (run(event, alone, handle, steps)) steps++;
  assert(steps > 10);
}

static void run_kinds(bool alone, void (*handle)(void)) {
  run_all(short_event, alone, handle);
  run_all(long_event, alone, handle);
  record_usable = true;
  run_all(short_event, alone, handle);
  record_usable = false;
}

// An event that is dropped takes no epoch with it.
static void drop(void) {
  struct Seen seen[blocks];
  begin(false);
  now = after;
  ring.soft = 0;
  drops = true;
  record_anew(record_reserve(&ring, 1), kind_malloc, (void*)block_of_thread, 8);
  short_event(block_behind);
  read_ring(seen, blocks);
  assert(seen[block_of_thread].events == 0 && seen[block_behind].events == 1 && seen[block_behind].stamp == after);
}

// Another thread's being alone ends with an event.
static void end_lease(void (*event)(uintptr_t)) {
  begin(false);
  lease_holder = 2;
  event(block_of_thread);
  assert(lease_holder == 0);
}

int main(void) {
  real.malloc_usable_size = usable;
  sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = at_step, .sa_flags = SA_SIGINFO}, NULL);
  for (int has_new_epoch = 0; has_new_epoch < 2; has_new_epoch++) {
    after = has_new_epoch ? 0x300000500 : 0x2fffff700;
    run_kinds(false, handler_among_others);
    run_kinds(true, handler_alone);
    run_kinds(true, handler_no_more_alone);
  }
  end_lease(short_event);
  end_lease(long_event);
  drop();
  return 0;
}
