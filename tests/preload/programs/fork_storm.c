// fork_storm COUNT: forks while threads allocate, and each child starts a thread. The number of calls for each child is
// fixed, so the trace's length does not depend on the time that it takes.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads_max = 3, calls_per_child = 10000 };

static atomic_int stop, round_number, begun;

static bool may_begin(int* seen) {
  if (*seen == round_number) {
    usleep(100);
    return false;
  }
  *seen = round_number;
  begun++;
  return true;
}

static void* churn(void* unused) {
  void* blocks[32] = {0};
  for (int seen = 0; !stop;) {
    for (unsigned i = 0, count = may_begin(&seen) ? calls_per_child : 0; i < count; i++) {
      void** place = &blocks[i * 7 % 32];
      *place = realloc(*place, 16 + i % 500 * 8);
      if (i % 3 == 0) free(*place), *place = NULL;
    }
  }
  for (int i = 0; i < 32; i++) free(blocks[i]);
  return unused;
}

static void* once(void* unused) {
  free(malloc(100));
  return unused;
}

static void child(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, once, NULL) != 0) _exit(1);
  pthread_join(thread, NULL);
  exit(0);
}

int main(int argc, char** argv) {
  pthread_t threads[threads_max];
  for (int i = 0; i < threads_max; i++) pthread_create(&threads[i], NULL, churn, NULL);
  int wrong = argc != 2;
  for (int i = 0; argc == 2 && i < atoi(argv[1]); i++) {
    int status = 1;
    round_number = i + 1;
    while (begun < threads_max * (i + 1)) sched_yield();
    pid_t pid = fork();
    if (pid == 0) child();
    wrong |= waitpid(pid, &status, 0) != pid || status != 0;
  }
  stop = 1;
  for (int i = 0; i < threads_max; i++) pthread_join(threads[i], NULL);
  return wrong;
}
