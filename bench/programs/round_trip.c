// round_trip: prints the time in ns in which a cache line goes from the first usable processor to the last one and
// back. The time is the least mean of 400 series of 100. The processors of a virtual machine share a cache at some
// times and not at others.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { series = 400, turns = 100 };

static _Alignas(128) atomic_int asked;
static _Alignas(128) atomic_int answered;
static int first = -1, last;

static void stay_on(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  sched_setaffinity(0, sizeof only, &only);
}

static double clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void* answer(void* unused) {
  stay_on(last);
  for (int turn = 1; turn <= series * turns; turn++) {
    while (atomic_load(&asked) != turn) continue;
    atomic_store(&answered, turn);
  }
  return unused;
}

int main(void) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return 1;
  for (int i = 0; i < CPU_SETSIZE; i++) {
    if (!CPU_ISSET(i, &all)) continue;
    if (first < 0) first = i;
    last = i;
  }
  if (first == last) {
    puts("0");
    return 0;
  }
  stay_on(first);
  pthread_t other;
  pthread_create(&other, NULL, answer, NULL);
  double least = 1e18;
  for (int turn = 1; turn <= series * turns;) {
    double begin = clock_ns();
    for (int i = 0; i < turns; i++, turn++) {
      atomic_store(&asked, turn);
      while (atomic_load(&answered) != turn) continue;
    }
    double mean = (clock_ns() - begin) / turns;
    if (mean < least) least = mean;
  }
  pthread_join(other, NULL);
  printf("%.0f\n", least);
  return 0;
}
