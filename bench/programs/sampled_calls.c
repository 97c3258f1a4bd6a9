/* sampled_calls THREADS CALLS: threads that make so many calls together, and free each other's blocks; in the end
nothing lives.

Each thread puts new blocks into places that all threads share, and ends the block that it finds there. So most blocks
are freed by another thread than the one that made them. Sizes are 1 to 4,096 bytes, small ones more often, and each
1,024th is 64 KiB. Prints the calls. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { places = 1 << 16 };
static _Atomic(void*) place[places];
static uint64_t calls_a_thread;
static _Atomic uint64_t calls;

static uint64_t next(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

static size_t size_of(uint64_t number) {
  if (number % 1024 == 0) return 65536;
  const unsigned bits = number >> 10 & 7; /* 32 to 4,096 */
  return 1 + (number >> 16) % (UINT64_C(32) << bits);
}

static void* make(uint64_t number, size_t size) {
  void* block = NULL;
  switch (number >> 13 & 15) {
    case 0:
      return calloc(1, size);
    case 1:
      return aligned_alloc(64, (size + 63) / 64 * 64);
    case 2:
      return posix_memalign(&block, 128, size) == 0 ? block : NULL;
    default:
      return malloc(size);
  }
}

static void* work(void* seed) {
  uint64_t state = (uint64_t)(uintptr_t)seed * UINT64_C(0x9e3779b97f4a7c15), made = 0;
  while (made < calls_a_thread) {
    const uint64_t number = next(&state);
    _Atomic(void*)* const here = &place[number >> 40 & (places - 1)];
    const size_t size = size_of(number);
    void* block;
    if ((number >> 32 & 15) == 0) {
      block = realloc(atomic_exchange(here, NULL), size);
    } else {
      block = make(number, size);
    }
    if (block == NULL) abort();
    *(volatile char*)block = 1;
    free(atomic_exchange(here, block));
    made += 2;
  }
  atomic_fetch_add(&calls, made);
  return NULL;
}

int main(int count, char** words) {
  if (count != 3) return 2;
  const int threads = atoi(words[1]);
  pthread_t thread[64];
  if (threads < 1 || threads > 64) return 2;
  calls_a_thread = strtoull(words[2], NULL, 10) / (uint64_t)threads;
  for (int i = 0; i < threads; i++) pthread_create(&thread[i], NULL, work, (void*)(uintptr_t)(i + 1));
  for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < places; i++) free(place[i]);
  printf("%llu\n", (unsigned long long)calls);
  return 0;
}
