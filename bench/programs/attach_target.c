// attach_target HOW PROGRESS [LIBRARY]: a program to attach to, for bench/attach. It never ends by itself. It checks
// its own work, counts it in the file PROGRESS, and ends with status 1 if anything is wrong. HOW is one of:
//
//     threads  50 threads allocate all the time, and check the contents of their blocks
//
//     forks    forks all the time, and waits for its children, which allocate
//
//     loads    loads and unloads LIBRARY all the time, while another thread allocates
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 50, blocks = 64 };

static uint64_t* progress;

static void wrong(const char* what) {
  fprintf(stderr, "attach_target: %s: %s\n", what, strerror(errno));
  _exit(1);
}

static void count(void) { __atomic_fetch_add(progress, 1, __ATOMIC_RELAXED); }

static void* allocate(void* number) {
  unsigned char* held[blocks] = {0};
  size_t sizes[blocks] = {0};
  unsigned seed = (unsigned)(uintptr_t)number;
  for (;;) {
    const size_t i = (size_t)rand_r(&seed) % blocks;
    for (size_t k = 0; k < sizes[i]; k += 97) {
      if (held[i][k] != (unsigned char)(i + k)) wrong("a block has changed");
    }
    free(held[i]);
    sizes[i] = (size_t)rand_r(&seed) % 3000;
    held[i] = malloc(sizes[i]);
    if (!held[i]) wrong("malloc");
    for (size_t k = 0; k < sizes[i]; k += 97) held[i][k] = (unsigned char)(i + k);
    count();
  }
  return NULL;
}

static void start_thread(uintptr_t number) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, allocate, (void*)number) != 0) wrong("pthread_create");
}

static void fork_once(void) {
  const pid_t child = fork();
  if (child < 0) wrong("fork");
  if (child == 0) {
    char* block = malloc(5000);
    memset(block, 1, 5000);
    free(block);
    _exit(7);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) wrong("a child");
}

static void load_once(const char* library) {
  void* handle = dlopen(library, RTLD_NOW);
  if (!handle) wrong(dlerror());
  dlclose(handle);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int file = open(argv[2], O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, 4096) != 0) wrong(argv[2]);
  progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  const int is_storm = strcmp(argv[1], "threads") == 0;
  for (uintptr_t i = 1; i < (is_storm ? threads : 2); i++) start_thread(i);
  if (is_storm) allocate(NULL);
  for (;;) {
    if (strcmp(argv[1], "forks") == 0)
      fork_once();
    else if (argc == 4)
      load_once(argv[3]);
    else
      return 2;
    count();
  }
}
