// calls WHAT: calls malloc(3)'s functions with known arguments, which the tests look for in the trace.
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

extern void free_sized(void*, size_t) __attribute__((weak));
extern void free_aligned_sized(void*, size_t, size_t) __attribute__((weak));

// Hides the sizes from the compiler.
static volatile size_t huge = SIZE_MAX / 2;

// Calls every function once; the size, from 70001 on, says which it was.
static void all(void) {
  void* block = NULL;
  free(malloc(70001));
  free(calloc(3, 70002));
  free(realloc(realloc(NULL, 70003), 70004));
  free(reallocarray(reallocarray(NULL, 2, 70005), 2, 70006));
  free(aligned_alloc(64, 70016));
  if (posix_memalign(&block, 128, 70007) == 0) free(block);
  free(memalign(256, 70008));
  free(valloc(70009));
  free(pvalloc(70010));
  free(NULL);
  realloc(malloc(70011), 0);
  free(malloc(0));
}

static void sized(void) {
  if (free_sized) free_sized(malloc(70012), 70012);
  if (free_aligned_sized) free_aligned_sized(aligned_alloc(64, 70080), 64, 70080);
}

static int refused(void) {
  int wrong = 0;
  void* block = malloc(70013);
  errno = 0;
  wrong |= malloc(huge) != NULL || errno != ENOMEM;
  errno = 0;
  wrong |= calloc(huge, 16) != NULL || errno != ENOMEM;
  errno = 0;
  wrong |= realloc(block, huge) != NULL || errno != ENOMEM;
  errno = 0;
  wrong |= reallocarray(block, huge, 16) != NULL || errno != ENOMEM;
  errno = 77;
  void* none = (void*)8;
  wrong |= posix_memalign(&none, 3, 8) != EINVAL || none != (void*)8 || errno != 77;
  wrong |= posix_memalign(&none, 64, huge) != ENOMEM || none != (void*)8;
  free(block);
  errno = 0;
  wrong |= aligned_alloc(64, huge) != NULL || errno != ENOMEM;
  errno = 0;
  wrong |= memalign(64, huge) != NULL || errno != ENOMEM;
  errno = 0;
  wrong |= valloc(huge) != NULL || errno != ENOMEM;
  errno = 0;
  wrong |= pvalloc(huge) != NULL || errno != ENOMEM;
  return wrong;
}

// Calls that succeed leave errno alone, in every thread, from its first call to its last.
static void* errno_kept(void* unused) {
  (void)unused;
  errno = 77;
  void* block = malloc(70014);
  for (int i = 0; i < 20000; i++) free(malloc(16));
  block = realloc(block, 70015);
  free(block);
  pthread_setname_np(pthread_self(), "a \"name\"");
  return (void*)(intptr_t)(errno != 77);
}

static int in_thread(void* (*work)(void*)) {
  pthread_t thread;
  void* wrong;
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, &wrong);
  return wrong != NULL || work(NULL) != NULL;
}

// A thread that another one names when it has already recorded events.
static pthread_barrier_t barrier;
static void* is_named(void* unused) {
  free(malloc(24));
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return unused;
}
static int names_other(void) {
  pthread_t thread;
  pthread_barrier_init(&barrier, NULL, 2);
  if (pthread_create(&thread, NULL, is_named, NULL) != 0) return 1;
  pthread_barrier_wait(&barrier);
  int failed = pthread_setname_np(thread, "named by other");
  pthread_barrier_wait(&barrier);
  return pthread_join(thread, NULL) != 0 || failed;
}

// A failing dlsym allocates its message, and frees the one that it allocated while the tracer started.
static int messages(void) {
  for (int i = 0; i < 3; i++) {
    if (dlsym(RTLD_DEFAULT, "no such function") || !dlerror()) return 1;
  }
  return dlerror() != NULL;
}

extern void* __libc_malloc(size_t);
extern void __libc_free(void*);

// Blocks allocated or freed by functions that the tracer does not interpose.
static int other_names(void) {
  for (int i = 0; i < 900; i++) free(__libc_malloc(70017));
  void* block = __libc_malloc(70018);
  block = realloc(block, huge) ? NULL : block;
  free(realloc(block, 70019));
  for (int i = 0; i < 3; i++) __libc_free(malloc(40));
  return 0;
}

static void on_signal(int signal) {
  (void)signal;
  free(malloc(24));
}

// A handler that allocates, called between calls: the real allocator would not survive it at any other moment.
static int signals(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; i < 2000; i++) {
    raise(SIGUSR1);
    free(malloc(32));
  }
  return 0;
}

// The same at any moment, for an allocator that is safe in handlers. A timer of a few microseconds hits the tracer too.
static int interrupted(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval often = {{0, 20}, {0, 20}};
  setitimer(ITIMER_REAL, &often, NULL);
  void* block = NULL;
  for (int i = 0; i < 300000; i++) {
    free(malloc(32));
    if (i % 8 == 0) block = realloc(block, 40);
  }
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc == 2 ? argv[1] : "";
  if (strcmp(what, "all") == 0) return all(), 0;
  if (strcmp(what, "sized") == 0) return sized(), 0;
  if (strcmp(what, "refused") == 0) return refused();
  if (strcmp(what, "errno") == 0) return in_thread(errno_kept);
  if (strcmp(what, "names_other") == 0) return names_other();
  if (strcmp(what, "messages") == 0) return messages();
  if (strcmp(what, "other_names") == 0) return other_names();
  if (strcmp(what, "interrupted") == 0) return interrupted();
  if (strcmp(what, "signals") == 0) return signals();
  return 2;
}
