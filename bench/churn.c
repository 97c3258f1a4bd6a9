// churn THREADS EVENTS: each thread makes and frees that many blocks in all, of 16 to 527 bytes, 64 alive at a time,
// some by realloc. Prints the nanoseconds an event took a thread.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long events;

static void* churn(void* seed) {
  void* blocks[64] = {0};
  uint32_t random = (uint32_t)(uintptr_t)seed;
  for (long i = 0; i < events; i += 2) {
    random = random * 1664525 + 1013904223;
    void** place = &blocks[random >> 26];
    size_t size = 16 + (random >> 8 & 511);
    if ((random >> 20 & 15) == 0) {
      *place = realloc(*place, size);
    } else {
      free(*place);
      *place = malloc(size);
    }
  }
  for (int i = 0; i < 64; i++) free(blocks[i]);
  return NULL;
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e9 + now.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  int threads = atoi(argv[1]);
  events = atol(argv[2]);
  pthread_t thread[64];
  double start = now_ns();
  for (intptr_t i = 0; i < threads && i < 64; i++) pthread_create(&thread[i], NULL, churn, (void*)(i + 1));
  for (int i = 0; i < threads && i < 64; i++) pthread_join(thread[i], NULL);
  printf("%.1f\n", (now_ns() - start) / (double)events);
}
