// Checks that the child's rings are whole where a signal handler forks within an event. The handler comes after each
// instruction, or each third, from where the stamp is read to where the event is published. The fork is simulated as
// the child of _Fork() sees it: the generation is wiped. With the child's first event the thread has another ring, and
// memory that nobody reads is in the place of its old one. The child's first event is the
// handler's own, or comes when it has returned. Until then the child shares its parent's ring, and is to leave it as it
// is.
#include <assert.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "preload/program/owners.h"
#include "preload/program/record.h"
#include "preload/program/tracing.h"
#include "tests/preload/programs/single_step.h"

enum { slots_in_ring = 1024, begin_in_parent = 300, own_generation = 1, generation_of_child };

bool clock_is_slow = true, sandbox_entered;

struct OneRing {
  alignas(128) struct Ring ring;
  struct Slot slots[slots_in_ring];
};
static struct OneRing parent, child, before_fork;
static uint64_t clock_value = 0x2fffff000, memory_used;
static bool handler_records, has_stacks;
static int reservations_in_parent;  // that the child has made, and left
// Steps begin where the event's stamp is read, or where its ring seems to be full: before it has reserved slots, or
// afterwards.
static enum { no_steps, from_stamp, from_room } begin_of_steps;
static volatile long steps_left;

static void begin_steps(void) {
  begin_of_steps = no_steps;
  set_trap(trap_flag);
}

uint64_t clock_slow_stamp(void) {
  if (begin_of_steps == from_stamp) begin_steps();
  return clock_value;
}

// The rest of the tracer, which is not under test.
uint32_t generation_page[1024];
void* sys_map_quietly(size_t bytes) {
  void* begin = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return begin == MAP_FAILED ? NULL : begin;
}
bool wait_for_room(struct Ring* ring, uint64_t position, uint64_t count) {
  (void)position, (void)count;
  if (ring->slots == 0 || generation_page[0] == 0) return false;
  ring->soft = slots_in_ring;
  if (begin_of_steps == from_room) begin_steps();
  return true;
}

static void claim(struct OneRing* of, uint32_t number, uint32_t generation) {
  memset(of, 0, sizeof *of);
  of->ring = (struct Ring){.slots = slots_in_ring, .soft = slots_in_ring};
  thread_self.ring = &of->ring;
  thread_self.slots = of->slots;
  thread_self.clock = &clock_value;
  thread_self.stamp_floor = clock_value;
  thread_self.owner = (uint8_t)(number + 1);
  stacks_claim(&thread_self, number);
  thread_self.generation = generation_page[0] = generation;
  thread_self.mark = thread_mark(generation);
}

static void count_reservations(void) { reservations_in_parent += parent.ring.reserved != before_fork.ring.reserved; }

static bool enter(void) {
  if (generation_page[0] == 0) {
    count_reservations();
    memset(&parent, 0, sizeof parent);
    claim(&child, 1, generation_of_child);
  }
  return true;
}
bool (*enter_recording)(void) = enter;

enum { block_of_thread = 1, block_of_handler, block_behind, blocks };
static const void* address_of(uintptr_t block) { return (const void*)(0x10000 + block * 64); }

// As an interposed function does.
static __attribute__((noinline)) void make_event(uintptr_t block, uint64_t size) {
  if (thread_self.generation == generation_page[0] || enter_recording())
    record(kind_malloc, address_of(block), size, has_stacks ? __builtin_frame_address(0) : NULL);
  __asm__ volatile("");
}
// With a record for what does not fit one.
static const uint64_t large_size = (uint64_t)1 << 33;

static uint64_t size_of_event;
static __attribute__((noinline)) void event_at(int depth) {
  if (depth > 0)
    event_at(depth - 1);
  else
    make_event(block_of_thread, size_of_event);
  __asm__ volatile("");
}

static void at_step(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  if (steps_left-- != 0) return;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
  before_fork = parent;
  generation_page[0] = 0;
  if (handler_records) make_event(block_of_handler, 8);
}

// The contents of a ring.
struct Seen {
  int events[blocks];
  uint32_t frames[blocks];  // of their stacks
};

static void read_ring(const struct OneRing* of, uint64_t begin, struct Seen* seen) {
  uint32_t depth = 0, apart = 0, left = 0, number = 0;
  bool is_known = false, has_apart = false;
  *seen = (struct Seen){0};
  for (uint64_t at = begin; at < of->ring.reserved; at++) {
    const struct Slot* slot = &of->slots[at];
    const uint32_t kind = slot_kind(slot->head);
    assert((slot->head & slot_valid) != 0);
    if (kind == record_stack) {
      const struct StackRecord stack = stack_head_of_slot(slot);
      assert(left == 0 && (stack.kept == 0 || (is_known && stack.number == number && stack.kept <= depth)));
      left = stack.added > stack_frames_first ? stack.added - stack_frames_first : 0;
      has_apart = stack.is_apart;
      if (stack.is_apart) {
        apart = stack.added;
        continue;
      }
      is_known = true;
      depth = stack.kept + stack.added;
      number = (stack.number + 1) % stack_numbers;
    } else if (kind == record_frames) {
      assert(left != 0);
      left = left > stack_frames_more ? left - stack_frames_more : 0;
    } else if (kind == record_void) {
      is_known = left == 0 && is_known;
      left = 0;
      has_apart = false;
    } else if (kind < record_events) {
      const uint64_t block = ((slot->head >> slot_address_shift) - 0x10000) / 64;
      assert(block < blocks && left == 0);
      seen->events[block]++;
      seen->frames[block] = has_apart ? apart : is_known ? depth : 0;
      has_apart = false;
    }
  }
  for (uint64_t at = of->ring.reserved; at < slots_in_ring; at++) assert(of->slots[at].head == 0);
}

// The child must not write to its parent's ring, but for what the parent writes itself.
static void check_parent(void) {
  for (uint64_t at = 0; at < slots_in_ring; at++) {
    const struct Slot *now = &parent.slots[at], *then = &before_fork.slots[at];
    if (now->head == then->head && now->body == then->body) continue;
    assert(at >= begin_in_parent && at < parent.ring.reserved && slot_kind(now->head) != record_void);
  }
}

// Whether the handler came before the end of the event.
static bool run(int depth, bool is_full, long steps) {
  struct Seen seen, before;
  thread_self = (struct Thread){.session = thread_session};
  claim(&parent, 0, own_generation);
  parent.ring.reserved = begin_in_parent;
  memset(&child, 0, sizeof child);
  make_event(block_behind, 8);  // so that there is a last stack
  read_ring(&parent, begin_in_parent, &before);
  const uint64_t reserved_before = parent.ring.reserved;
  steps_left = steps;
  if (is_full) parent.ring.soft = 0;
  begin_of_steps = is_full ? from_room : from_stamp;
  event_at(depth);
  set_trap(0);
  if (steps_left >= 0) return false;
  if (generation_page[0] == 0) {
    check_parent();
    count_reservations();
  }
  const bool was_reserved = is_full || before_fork.ring.reserved != reserved_before;
  make_event(block_behind, 8);
  read_ring(&child, 0, &seen);
  assert(seen.events[block_of_thread] <= 1 && (was_reserved || seen.events[block_of_thread] == 1));
  assert(seen.events[block_of_handler] == handler_records);
  assert(seen.events[block_behind] == 1 && seen.frames[block_behind] == before.frames[block_behind]);
  if (seen.events[block_of_thread] && has_stacks)
    assert(seen.frames[block_of_thread] == before.frames[block_behind] + (uint32_t)depth + 1);
  return true;
}

static void run_all(int depth, uint64_t size, bool is_full, long stride) {
  size_of_event = size;
  for (int i = 0; i < 2; i++) {
    long steps = 0;
    handler_records = i == 0;
    reservations_in_parent = 0;
    while (steps < 5000 && run(depth, is_full, steps)) steps += stride;
    assert(steps > (has_stacks ? 40 : 15));
    assert(reservations_in_parent <= 1);  // where the fork comes just before the instruction that reserves
  }
}

int main(void) {
  void* share = sys_map_quietly(sizeof(struct StackShare));
  if (stacks_begin_process(share, 0, false, false)) return 77;
  sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = at_step, .sa_flags = SA_SIGINFO}, NULL);
  if (!owners_prepare()) return 1;
  owners_begin_process(&memory_used);
  stamps_for_times();
  for (int is_full = 0; is_full < 2; is_full++) {
    has_stacks = false;
    run_all(0, 8, is_full, 1);
    run_all(0, large_size, is_full, 1);
    has_stacks = true;
    run_all(0, 8, is_full, 1);
    run_all(12, 8, is_full, 3);
    run_all(12, large_size, is_full, 7);
  }
  run_all(1000, 8, true, 163);  // in several pieces
  return 0;
}
