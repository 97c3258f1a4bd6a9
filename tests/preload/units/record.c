// Checks that each record has the stamp of its own event where a signal handler or a full ring comes between. The upper
// bits of stamps may also change meanwhile (preload/protocol.h, "Stamps"). The handler comes after each single
// instruction.
#include <assert.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "preload/program/owners.h"
#include "preload/program/record.h"
#include "preload/program/tracing.h"
#include "tests/preload/programs/single_step.h"

enum { slots_in_ring = 64 };

bool clock_is_slow = true, sandbox_entered;

static alignas(128) struct Ring ring;
static struct Slot slots[slots_in_ring];
static const uint64_t before = 0x2fffff000;
static uint64_t after, now, clock_value;
static uint64_t memory_used;
static bool drops;

uint64_t clock_slow_stamp(void) { return now; }

// The rest of the tracer, which is not under test.
uint32_t generation_page[1024];
static bool is_off(void) { return false; }
bool (*enter_recording)(void) = is_off;
void* sys_map_quietly(size_t bytes) { return sandbox_entered ? NULL : sys_map(bytes); }

static size_t usable(void* block) { return block ? 64 : 0; }

bool wait_for_room(struct Ring* full, uint64_t position, uint64_t count) {
  full->soft = position + count + slots_in_ring;
  if (!drops) return true;
  drops = false;
  full->reserved = position;
  return false;
}

enum { block_of_handler = 1, block_of_thread, block_behind, blocks };

static void* address_of(uintptr_t block) { return (void*)(0x10000 + block * 64); }

// The blocks' memory is this ring's, or another's.
static void begin(bool is_own) {
  memset(slots, 0, sizeof slots);
  ring = (struct Ring){.slots = slots_in_ring, .soft = slots_in_ring};
  thread_self = (struct Thread){.ring = &ring,
                                .slots = slots,
                                .clock = &clock_value,
                                .stamp_floor = before,
                                .owner = 1,
                                .generation = 1,
                                .mark = thread_mark(1)};
  generation_page[0] = 1;
  for (uintptr_t i = block_of_handler; i < blocks; i++) owners_take(is_own ? 1 : 2, address_of(i), 64);
  now = clock_value = before;
}

// The events of one block in the ring.
struct Seen {
  int events;
  uint64_t position, stamp;
};

static void read_ring(struct Seen seen[blocks]) {
  uint64_t stamp_high = before >> 32;
  memset(seen, 0, blocks * sizeof *seen);
  for (uint64_t at = 0; at < ring.reserved; at++) {
    const struct Slot slot = slots[at];
    const uint32_t kind = slot_kind(slot.head);
    const uint64_t block = ((slot.head >> slot_address_shift) - 0x10000) / 64;
    assert((slot.head & slot_valid) != 0);
    if (kind == record_stamp_high) stamp_high = slot.body;
    if (kind >= record_stamp_high) continue;
    assert(block < blocks);
    seen[block] = (struct Seen){seen[block].events + 1, at, stamp_high << 32 | (uint32_t)slot.body};
  }
}

static void short_event(uintptr_t block) { record(kind_malloc, address_of(block), 8, NULL); }
static void long_event(uintptr_t block) {
  record_long(
      &(struct Call){.kind = kind_calloc, .address = address_of(block), .size = 8, .has_count = true, .count = 2},
      NULL);
}
static void release(uintptr_t block) { record(kind_free, address_of(block), 0, NULL); }

// Meanwhile the collector raises Control::clock.
static void handler_event(void) {
  now = clock_value = after;
  short_event(block_of_handler);
}

static volatile long steps_left;
static void at_step(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  if (steps_left-- != 0) return;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
  handler_event();
}

// Whether the handler came before the end of the event.
static bool run(void (*event)(uintptr_t), bool is_own, long steps) {
  begin(is_own);
  steps_left = steps;
  set_trap(trap_flag);
  event(block_of_thread);
  set_trap(0);
  if (steps_left >= 0) return false;
  short_event(block_behind);
  struct Seen seen[blocks];
  read_ring(seen);
  const struct Seen own = seen[block_of_thread];
  for (int i = block_of_handler; i < blocks; i++) assert(seen[i].events == 1);
  if ((own.stamp != before && own.stamp != after) || seen[block_of_handler].stamp != after ||
      seen[block_behind].stamp != after) {
    fprintf(stderr, "after instruction %ld: stamps %llx, %llx, %llx\n", steps, (unsigned long long)own.stamp,
            (unsigned long long)seen[block_of_handler].stamp, (unsigned long long)seen[block_behind].stamp);
    assert(false);
  }
  return true;
}

static void run_all(void (*event)(uintptr_t), bool is_own) {
  long steps = 0;
  while (run(event, is_own, steps)) steps++;
  assert(steps > 10);
}

static void run_kinds(bool is_own) {
  run_all(short_event, is_own);
  run_all(long_event, is_own);
  run_all(release, is_own);
  choose_short_events(0, usable);
  run_all(short_event, is_own);
  choose_short_events(0, NULL);
}

// A dropped event does not take the upper bits of stamps with it.
static void drop(void) {
  struct Seen seen[blocks];
  begin(false);
  now = after;
  ring.soft = 0;
  drops = true;
  struct HeldRing held = hold_ring(&thread_self);
  const uint64_t position = ring_reserve(&held, 1);
  record_short_again(&ring, held.generation, position, kind_malloc, address_of(block_of_thread), 8, after);
  short_event(block_behind);
  read_ring(seen);
  assert(seen[block_of_thread].events == 0 && seen[block_behind].events == 1 && seen[block_behind].stamp == after);
}

// Control::clock stays below the real one: is the event's stamp true?
static bool has_true_stamp(void (*event)(uintptr_t), bool is_own) {
  struct Seen seen[blocks];
  begin(is_own);
  now = before + 100;
  event(block_of_thread);
  read_ring(seen);
  assert(seen[block_of_thread].stamp == before || seen[block_of_thread].stamp == now);
  return seen[block_of_thread].stamp == now;
}

static void check_stamps_where_memory_changes_hands(void) {
  void (*const events[])(uintptr_t) = {short_event, long_event, release};
  for (int i = 0; i < 3; i++) assert(!has_true_stamp(events[i], true) && has_true_stamp(events[i], false));
  assert(clock_value == before);
  owners_usable_size = NULL;  // Control::clock rises instead of a note at the bytes
  assert(has_true_stamp(release, false) && clock_value == now + 1);
  owners_usable_size = usable;
  begin(true);
  now = before + 100;
  record_long(&(struct Call){.kind = kind_mark, .address = address_of(block_of_thread), .label = "label"}, NULL);
  assert(clock_value == now + 1);
}

// The ring has more records than slots in it. One of `records` frees another thread's block. Is every stamp true after
// so many of them?
static bool is_all_true_after(uint64_t foreign_frees, uint64_t records, enum StampChoice choice, uint8_t owner,
                              uint64_t size) {
  stamps_choose(choice);
  stamps_forget();
  stamps_for_threads();
  begin(false);
  for (uint64_t frees = 0; frees < foreign_frees; frees++) {
    if (stamping != stamping_sparse) return false;  // too early
    if (owner) owners_take(owner, address_of(block_of_thread), size);
    if (!owner) owners_forget();
    ring.reserved += records - 1;
    ring.soft = ring.reserved + slots_in_ring;
    release(block_of_thread);
  }
  const bool are_all = stamping == stamping_all;
  stamps_for_threads();
  assert((stamping == stamping_all) == are_all);
  return are_all;
}

static void check_stamps_where_threads_share_memory(void) {
  enum { own = 1, another, of_before = 0 };
  assert(is_all_true_after(256, 40, stamps_by_sharing, another, 64));
  assert(!is_all_true_after(100000, 41, stamps_by_sharing, another, 64));
  assert(!is_all_true_after(100000, 1, stamps_sparse, another, 64));
  // Their frees have true stamps, too, but no other thread had these.
  assert(!is_all_true_after(1000, 1, stamps_by_sharing, own, owners_large));
  assert(!is_all_true_after(1000, 1, stamps_by_sharing, of_before, 64));
}

int main(void) {
  stamps_choose(stamps_sparse);
  sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = at_step, .sa_flags = SA_SIGINFO}, NULL);
  if (!owners_prepare()) return 1;
  owners_begin_process(&memory_used);
  owners_usable_size = usable;
  for (int has_new_high = 0; has_new_high < 2; has_new_high++) {
    after = has_new_high ? 0x300000500 : 0x2fffff700;
    if (!has_new_high) assert(!has_true_stamp(short_event, false));
    if (!has_new_high) run_kinds(true);  // in a process with one thread
    stamps_for_threads();
#ifndef CMT_DAILY
    if (!has_new_high) continue;
#endif
    run_kinds(true);
    run_kinds(false);
  }
  check_stamps_where_memory_changes_hands();
  drop();
  check_stamps_where_threads_share_memory();
  stamps_for_times();
  assert(has_true_stamp(short_event, true));
  return 0;
}
