// fork_storm COUNT: a program whose threads never stop allocating forks, and each child starts a thread.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int stop;

static void* churn(void* unused) {
  void* blocks[32] = {0};
  for (unsigned i = 0; !stop; i++) {
    void** place = &blocks[i * 7 % 32];
    *place = realloc(*place, 16 + i % 500 * 8);
    if (i % 3 == 0) free(*place), *place = NULL;
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
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, churn, NULL);
  int wrong = argc != 2;
  for (int i = 0; argc == 2 && i < atoi(argv[1]); i++) {
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) child();
    wrong |= waitpid(pid, &status, 0) != pid || status != 0;
  }
  stop = 1;
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  return wrong;
}
