// pairs THREADS PAIRS [SIZE]: each thread makes so many pairs of malloc(SIZE) and free (64 bytes), nine times. Prints
// the least processor time of a pair over the repetitions and threads, in ns. With SIZE 0: sizes of 16 to 32,768 bytes,
// of which 1,000 blocks are live.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { repetitions = 9, live = 1000, threads_max = 64 };
static uint64_t pairs;
static size_t size;

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void of_one_size(void) {
  for (uint64_t i = 0; i < pairs; i++) {
    void* volatile block = malloc(size);
    free(block);
  }
}

static void of_many_sizes(void) {
  static _Thread_local void* blocks[live];
  uint32_t random = 1;
  for (uint64_t i = 0; i < pairs; i++) {
    random = random * 1664525 + 1013904223;
    void** const place = &blocks[(random >> 8) % live];
    free(*place);
    *place = malloc((size_t)16 << (random >> 20) % 12);
  }
}

static void* run(void* least) {
  for (int i = 0; i < repetitions; i++) {
    const double begin = now_ns();
    if (size)
      of_one_size();
    else
      of_many_sizes();
    const double each = (now_ns() - begin) / (double)pairs;
    if (i == 0 || each < *(double*)least) *(double*)least = each;
  }
  return least;
}

int main(int count, char** words) {
  const int threads = count > 1 ? atoi(words[1]) : 1;
  static double least[threads_max];
  pthread_t thread[threads_max];
  if (threads < 1 || threads > threads_max) return 2;
  pairs = count > 2 ? strtoull(words[2], NULL, 10) : 1000000;
  size = count > 3 ? strtoull(words[3], NULL, 10) : 64;
  for (int i = 1; i < threads; i++) pthread_create(&thread[i], NULL, run, &least[i]);
  run(&least[0]);
  for (int i = 1; i < threads; i++) {
    pthread_join(thread[i], NULL);
    if (least[i] < least[0]) least[0] = least[i];
  }
  printf("%.3f\n", least[0]);
}
