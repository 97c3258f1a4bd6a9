// churn THREADS SECONDS: each thread frees a block at random and allocates another of 8 to 1,024 bytes; 10,000 blocks
// are alive in all. THREADS 0 uses the program's first thread only. From four threads on, every fourth block is handed
// to the thread that asks next, which frees it. Prints the calls made, their wall time and processor time in ns, and
// the bytes resident at the end.
//
// churn THREADS calls=N: the same, until all threads together have made N calls.
//
// churn THREADS rest: each thread makes one call, then all wait. Prints the same: the memory that a thread costs at
// rest.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { live = 10000, threads_max = 1024, handed_slots = 256, look_every = 2048 };

static _Atomic(void*) handed[handed_slots];
static int threads;
static double end_ns;
static long calls;  // of each thread; 0: until end_ns
static atomic_long events;
static pthread_barrier_t all_there;

static double clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static long bytes_resident(void) {
  long pages = 0, ignored;
  FILE* statm = fopen("/proc/self/statm", "r");
  if (!statm || fscanf(statm, "%ld %ld", &ignored, &pages) != 2) return 0;
  fclose(statm);
  return pages * sysconf(_SC_PAGESIZE);
}

static void* churn(void* seed) {
  uint32_t count = live / (uint32_t)(threads ? threads : 1), random = (uint32_t)(uintptr_t)seed;
  void** blocks = calloc(count, sizeof *blocks);
  long done = 0;
  do {
    for (int i = 0; i < look_every; i++) {
      random = random * 1664525 + 1013904223;
      void** place = &blocks[(uint64_t)random * count >> 32];
      if (threads >= 4 && (random & 0x300) == 0) *place = atomic_exchange(&handed[random >> 10 & 255], *place);
      free(*place);
      *place = malloc(8 + (random >> 12) % 1017);
    }
    done += 2 * look_every;
  } while (calls ? done < calls : clock_ns(CLOCK_MONOTONIC) < end_ns);
  atomic_fetch_add(&events, done);
  return NULL;
}

static void* rest(void* unused) {
  free(malloc(100));
  pthread_barrier_wait(&all_there);
  sleep(3);
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  threads = atoi(argv[1]);
  int resting = strcmp(argv[2], "rest") == 0;
  pthread_t thread[threads_max];
  if (threads < 0 || threads > threads_max) return 2;
  if (strncmp(argv[2], "calls=", 6) == 0) calls = atol(argv[2] + 6) / (threads ? threads : 1);
  pthread_barrier_init(&all_there, NULL, (unsigned)threads + 1);
  double begin = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  end_ns = begin + atof(argv[2]) * 1e9;
  for (intptr_t i = 0; i < threads; i++) pthread_create(&thread[i], NULL, resting ? rest : churn, (void*)(i + 1));
  if (!threads) churn((void*)1);
  if (resting) {
    pthread_barrier_wait(&all_there);
    usleep(2500000);
  }
  long resident = resting ? bytes_resident() : 0;
  for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  double wall = clock_ns(CLOCK_MONOTONIC) - begin;
  cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  if (!resting) resident = bytes_resident();
  printf("%ld %.0f %.0f %ld\n", (long)events, wall, cpu, resident);
}
