// floor_drain: makes the rings that bench/programs/floor.c writes to, prints the path of their file, and reads them
// until SIGTERM: 16 bytes a slot, of which it makes nothing. Then prints the events that it read, and its own processor
// time in ns.
//
// It sleeps until the fullest ring is a quarter full, by its speed so far; where nothing comes, until a thread wakes
// it. The tracer's collector does the same.
#include "floor.h"

#include <linux/futex.h>
#include <linux/sched/types.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { piece = 1024, brief_ns_max = 1000000, deep_ns = 100000000 };

static volatile sig_atomic_t has_ended;
static struct FloorMemory* memory;
static uint64_t events;
static volatile uint64_t sum;  // of all that is read, so that the compiler leaves the reads in place

static void end(int signal) {
  (void)signal;
  has_ended = 1;
}

static uint64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// Flushes each cache line that it has read: otherwise the thread, a lap later, has to fetch it from this processor.
static uint64_t drain_piece(struct FloorRing* ring, const struct FloorSlot* slots) {
  const uint64_t begin = ring->tail;
  uint64_t tail = begin, read = 0;
  for (; tail - begin < piece; tail++) {
    const struct FloorSlot* slot = &slots[tail % floor_slots];
    const uint64_t head = __atomic_load_n(&slot->head, __ATOMIC_ACQUIRE);
    if ((head & (floor_valid | floor_parity)) != floor_marks(tail)) break;
    read += head ^ slot->body;
    if (tail % 4 == 3) __asm__ volatile("clflushopt %0" : : "m"(*slot));
  }
  sum += read;
  if (tail == begin) return 0;
  __atomic_store_n(&ring->tail, tail, __ATOMIC_SEQ_CST);
  if (__atomic_exchange_n(&ring->waiting, 0, __ATOMIC_SEQ_CST))
    syscall(SYS_futex, &ring->tail, FUTEX_WAKE, 1, NULL, NULL, 0);
  return tail - begin;
}

// Returns the events of the ring that had most.
static uint64_t drain(void) {
  const uint32_t used = __atomic_load_n(&memory->rings_used, __ATOMIC_ACQUIRE);
  uint64_t most = 0;
  for (uint32_t i = 0; i < used && i < floor_rings; i++) {
    uint64_t moved = 0, read;
    do moved += read = drain_piece(&memory->rings[i], memory->slots[i]);
    while (read == piece && moved < floor_slots);
    if (moved > most) most = moved;
    events += moved;
  }
  return most;
}

// Asks for short time slices, which the kernel grants sooner.
static void request_short_slices(void) {
  struct sched_attr attributes = {0};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.sched_runtime = 100000;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static void sleep_deeply(void) {
  const struct timespec time = {0, deep_ns};
  __atomic_store_n(&memory->asleep, 1, __ATOMIC_SEQ_CST);
  if (!has_ended) syscall(SYS_futex, &memory->asleep, FUTEX_WAIT, 1, &time, NULL, 0);
  __atomic_store_n(&memory->asleep, 0, __ATOMIC_SEQ_CST);
}

static void sleep_ns(uint64_t ns) {
  const struct timespec time = {0, (long)(ns < brief_ns_max ? ns : brief_ns_max)};
  nanosleep(&time, NULL);
}

static void run(void) {
  uint64_t last_ns = clock_ns(CLOCK_MONOTONIC), idle_passes = 0;
  while (!has_ended) {
    const uint64_t most = drain(), now_ns = clock_ns(CLOCK_MONOTONIC);
    idle_passes = most ? 0 : idle_passes + 1;
    if (idle_passes > 10)
      sleep_deeply();
    else if (most < floor_slots / 4)
      sleep_ns(most ? (now_ns - last_ns) * (floor_slots / 4) / most : brief_ns_max);
    last_ns = now_ns;
  }
  while (drain()) continue;
}

int main(void) {
  const int file = memfd_create("floor", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof *memory) != 0) return 1;
  memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return 1;
  signal(SIGTERM, end);
  prctl(PR_SET_TIMERSLACK, 1);
  request_short_slices();
  printf("/proc/%d/fd/%d\n", (int)getpid(), file);
  fflush(stdout);
  run();
  printf("%lu %lu\n", (unsigned long)events, (unsigned long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
  return 0;
}
