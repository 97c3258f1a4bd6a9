// victim COUNTS THREADS: runs threads that call malloc, realloc and free until they are killed. Each counts the calls
// that it has begun and done in the file COUNTS, which outlives it; its sizes identify it.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { threads_max = 64, size_step = 10000 };

struct Count {
  volatile uint64_t begun;
  volatile uint64_t done;
  uint64_t unused[6];
};

static struct Count* counts;

static void* churn(void* argument) {
  uintptr_t self = (uintptr_t)argument;
  struct Count* count = &counts[self];
  void* blocks[16] = {0};
  uint32_t random = 99 + (uint32_t)self;
  for (;;) {
    random = random * 1664525 + 1013904223;
    void** place = &blocks[random >> 28];
    size_t size = size_step * (self + 1) + (random >> 8 & 1023);
    count->begun++;
    if (!*place)
      *place = malloc(size);
    else if (random >> 26 & 1)
      *place = realloc(*place, size);
    else
      free(*place), *place = NULL;
    count->done++;
    for (volatile int spin = 0; spin < 3000; spin++) continue;
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  int threads = atoi(argv[2]);
  int fd = open(argv[1], O_RDWR);
  counts = mmap(NULL, threads_max * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (counts == MAP_FAILED) return 2;
  pthread_t thread;
  for (intptr_t i = 0; i < threads && i < threads_max; i++) pthread_create(&thread, NULL, churn, (void*)i);
  write(STDOUT_FILENO, "+", 1);
  for (;;) pause();
}
