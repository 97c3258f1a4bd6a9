// many_threads [occupied]: obeys lines of its input, and answers each with a line.
//
//     threads N       N threads, one after the other, allocate ten blocks of 60007 bytes each. glibc gives each the
//                     stack of the one before.
//     two-generations forks while two threads wait. The child uses their stacks for six such threads, and ends.
//     load PATH       dlopen, and "loaded" or why not.
//
// occupied: each thread keeps something of its own in the bytes that glibc does not use
// (cmttrace/attach/thread_storage.h).
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_occupied;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void occupy(void) {
  uintptr_t at;
  __asm__("movq %%fs:0, %0" : "=r"(at));
  if (is_occupied) memset((void*)(at + 0x80), 0x55, 512);
}

static void* allocate(void* unused) {
  occupy();
  for (int i = 0; i < 10; i++) free(malloc(60007));
  return unused;
}

static void* wait_at_gate(void* unused) {
  allocate(NULL);
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
  return unused;
}

static void make_threads(long count) {
  for (pthread_t thread; count > 0; count--) {
    if (pthread_create(&thread, NULL, allocate, NULL) != 0) abort();
    pthread_join(thread, NULL);
  }
}

static void make_two_generations(void) {
  pthread_t waiting[2];
  pthread_mutex_lock(&gate);
  for (int i = 0; i < 2; i++)
    if (pthread_create(&waiting[i], NULL, wait_at_gate, NULL) != 0) abort();
  usleep(20000);
  const pid_t child = fork();
  if (child == 0) {
    make_threads(6);
    exit(0);
  }
  waitpid(child, NULL, 0);
  pthread_mutex_unlock(&gate);
  for (int i = 0; i < 2; i++) pthread_join(waiting[i], NULL);
}

int main(int count, char** arguments) {
  char line[4096];
  is_occupied = count > 1 && strcmp(arguments[1], "occupied") == 0;
  occupy();
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "threads ", 8) == 0) make_threads(strtol(line + 8, NULL, 10));
    if (strcmp(line, "two-generations") == 0) make_two_generations();
    const bool is_loaded = strncmp(line, "load ", 5) != 0 || dlopen(line + 5, RTLD_NOW) != NULL;
    puts(is_loaded ? "done" : dlerror());
    fflush(stdout);
  }
  return 0;
}
