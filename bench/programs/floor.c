// Shows the least cost of a lossless tracer. This library to preload forwards each call and appends 16 bytes to the
// thread's ring, from which another process (floor_drain.c) reads. Compiled with -DFLOOR_CLOCK, each event reads the
// time stamp counter. If the event ends a block, an lfence comes first, as in a tracer that orders events across
// threads.
//
// A thread waits while its ring is full. A realloc is two events, one before and one after the call. It does nothing
// else: no guard against calls within calls, no signal handlers, no ends of threads. FLOOR_RINGS names the file of the
// rings.
#include "floor.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { kind_allocation, kind_end };

static void* (*next_malloc)(size_t);
static void (*next_free)(void*);
static void* (*next_calloc)(size_t, size_t);
static void* (*next_realloc)(void*, size_t);
static void* (*next_memalign)(size_t, size_t);

static struct FloorMemory* memory;

static __thread struct {
  struct FloorSlot* slots;
  uint64_t position;
  uint64_t look_at;  // the position from which `tail` is to be read again
  struct FloorRing* ring;
} self;

static void fail(const char* what) {
  (void)!write(2, what, strlen(what));
  _exit(125);
}

static bool open_ring(void) {
  if (!memory) return false;
  const uint32_t number = __atomic_fetch_add(&memory->rings_used, 1, __ATOMIC_RELAXED);
  if (number >= floor_rings) fail("floor: more threads than rings\n");
  self.ring = &memory->rings[number];
  self.slots = memory->slots[number];
  self.position = self.look_at = 0;
  return true;
}

// Wakes the drainer where it sleeps, and waits while the ring is full. Every quarter of a lap.
static __attribute__((noinline)) bool look(void) {
  if (!self.slots && !open_ring()) return false;
  if (__atomic_load_n(&memory->asleep, __ATOMIC_RELAXED) && __atomic_exchange_n(&memory->asleep, 0, __ATOMIC_SEQ_CST))
    syscall(SYS_futex, &memory->asleep, FUTEX_WAKE, 1, NULL, NULL, 0);
  const struct timespec time = {0, 1000000};
  uint64_t tail;
  while (tail = __atomic_load_n(&self.ring->tail, __ATOMIC_ACQUIRE), self.position == tail + floor_slots) {
    __atomic_store_n(&self.ring->waiting, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&self.ring->tail, __ATOMIC_SEQ_CST) == tail)
      syscall(SYS_futex, &self.ring->tail, FUTEX_WAIT, (uint32_t)tail, &time, NULL, 0);
  }
  const uint64_t room = tail + floor_slots - self.position;
  self.look_at = self.position + (room < floor_slots / 4 ? room : floor_slots / 4);
  return true;
}

static uint32_t stamp(uint64_t kind) {
#ifdef FLOOR_CLOCK
  if (kind == kind_end) _mm_lfence();
  return (uint32_t)(__rdtsc() >> 4);
#else
  (void)kind;
  return 0;
#endif
}

static inline __attribute__((always_inline)) void append(uint64_t kind, const void* address, size_t size) {
  const uint32_t now = stamp(kind);
  if (__builtin_expect(self.position == self.look_at, 0) && !look()) return;
  const uint64_t position = self.position++;
  struct FloorSlot* slot = &self.slots[position % floor_slots];
  slot->body = (uint64_t)size << 32 | now;
  const uint64_t head = (uint64_t)(uintptr_t)address << 16 | kind | floor_marks(position);
  __atomic_store_n(&slot->head, head, __ATOMIC_RELEASE);
}

static void forget_ring(void) {
  self.slots = NULL;
  self.position = self.look_at = 0;
}

__attribute__((constructor)) static void begin(void) {
  *(void**)&next_free = dlsym(RTLD_NEXT, "free");
  *(void**)&next_calloc = dlsym(RTLD_NEXT, "calloc");
  *(void**)&next_realloc = dlsym(RTLD_NEXT, "realloc");
  *(void**)&next_memalign = dlsym(RTLD_NEXT, "memalign");
  *(void**)&next_malloc = dlsym(RTLD_NEXT, "malloc");
  const char* path = getenv("FLOOR_RINGS");
  const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) fail("floor: FLOOR_RINGS is no file that can be opened\n");
  void* mapped = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) fail("floor: no memory for the rings\n");
  close(file);
  pthread_atfork(NULL, NULL, forget_ring);
  memory = mapped;
}

extern void* __libc_malloc(size_t);
extern void __libc_free(void*);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
  if (!memory) return __libc_malloc(size);
  void* block = next_malloc(size);
  append(kind_allocation, block, size);
  return block;
}

void free(void* block) {
  if (!memory) {
    __libc_free(block);
    return;
  }
  append(kind_end, block, 0);
  next_free(block);
}

void* calloc(size_t count, size_t size) {
  if (!memory) return __libc_calloc(count, size);
  void* block = next_calloc(count, size);
  append(kind_allocation, block, count * size);
  return block;
}

void* realloc(void* block, size_t size) {
  if (!memory) return __libc_realloc(block, size);
  append(kind_end, block, 0);
  void* result = next_realloc(block, size);
  append(kind_allocation, result, size);
  return result;
}

void* memalign(size_t alignment, size_t size) {
  if (!memory) return __libc_memalign(alignment, size);
  void* block = next_memalign(alignment, size);
  append(kind_allocation, block, size);
  return block;
}

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** result, size_t alignment, size_t size) {
  void* block = memalign(alignment, size);
  if (!block) return ENOMEM;
  *result = block;
  return 0;
}
