// crowd THREADS EVENTS: runs so many threads at once, each of which writes through its ring, then prints a line and
// waits for one.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t all_done, end;
static int events;

static void* work(void* unused) {
  for (int i = 0; i < events / 2; i++) free(malloc(100));
  pthread_barrier_wait(&all_done);
  pthread_barrier_wait(&end);
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int threads = atoi(argv[1]);
  events = atoi(argv[2]);
  pthread_barrier_init(&all_done, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 1 << 16);
  pthread_t* numbers = calloc((size_t)threads, sizeof *numbers);
  for (int i = 0; i < threads; i++) {
    if (pthread_create(&numbers[i], &small, work, NULL) == 0) continue;
    printf("no more than %d threads\n", i);
    return 77;
  }
  pthread_barrier_wait(&all_done);
  puts("done");
  fflush(stdout);
  getchar();
  pthread_barrier_wait(&end);
  for (int i = 0; i < threads; i++) pthread_join(numbers[i], NULL);
  return 0;
}
