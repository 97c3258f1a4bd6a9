// musl HOW: what programs for musl do, with calls of malloc(3) whose numbers musl_test.sh knows. With LIBRARY, a
// library that the program loads.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LIBRARY
static void* kept;
__attribute__((constructor)) static void begin(void) { kept = malloc(8); }
void use(int calls) {
  for (int i = 0; i < calls; i++) free(calloc(3, 5));
}
#else

enum { threads_max = 1000, stack_bytes = 64 << 10, page_bytes = 4096 };

static pthread_barrier_t all_live;
static void* volatile kept;
static const char* own;

static void pairs(int calls) {
  for (int i = 0; i < calls; i++) free(malloc(100));
}

static void all_functions(int calls) {
  for (int i = 0; i < calls; i++) {
    void* block = NULL;
    free(malloc(1));
    free(calloc(3, 2));
    free(realloc(realloc(NULL, 3), 300000));
    free(reallocarray(NULL, 2, 4));
    free(aligned_alloc(64, 128));
    if (posix_memalign(&block, 128, 7) == 0) free(block);
    free(memalign(256, 8));
    free(valloc(9));
  }
}

static void* run_pairs(void* unused) {
  (void)unused;
  pairs(500);
  free(strdup("a thread"));
  return NULL;
}

static void* live_with_all(void* unused) {
  pairs(2);
  pthread_barrier_wait(&all_live);
  pairs(1);
  return unused;
}

static void run_threads(void* run(void*), int count, pthread_attr_t* attributes) {
  pthread_t threads[threads_max];
  for (int i = 0; i < count; i++) {
    if (pthread_create(&threads[i], attributes, run, NULL) != 0) abort();
  }
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

static void crowd(void) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, stack_bytes);
  pthread_barrier_init(&all_live, NULL, threads_max);
  run_threads(live_with_all, threads_max, &small);
}

// musl puts the control block at the end of a thread's memory: nothing beyond it may be read. The first thread has that
// of `unused` before it. So a page without access can follow soon after it.
static __thread volatile char unused[2600];
static void guarded(void) {
  unused[0] = 1;
  char* const next = (char*)((uintptr_t)__builtin_thread_pointer() / page_bytes * page_bytes + page_bytes);
  mprotect(next, page_bytes, PROT_NONE);  // the headers of the library that was loaded last
  kept = malloc(5);
  mprotect(next, page_bytes, PROT_READ);
  pthread_attr_t attributes;
  char* stack = mmap(NULL, stack_bytes + page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(stack + stack_bytes, page_bytes, PROT_NONE);
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, stack_bytes);
  run_threads(run_pairs, 1, &attributes);
}

static void wait_for(pid_t child) {
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) abort();
}

static void forks(void) {
  pairs(10);
  for (int i = 0; i < 3; i++) {
    const pid_t child = fork();
    if (child == 0) {
      pairs(20 + i);
      run_threads(run_pairs, 2, NULL);
      _exit(0);
    }
    wait_for(child);
  }
  pairs(10);
}

static void starts(void) {
  char* arguments[] = {(char*)own, (char*)"all", NULL};
  pid_t child = vfork();
  if (child == 0) {
    execv(own, arguments);
    _exit(1);
  }
  wait_for(child);
  if (posix_spawn(&child, own, NULL, NULL, arguments, environ) != 0) abort();
  wait_for(child);
  char line[4096];
  snprintf(line, sizeof line, "%s all; /bin/true", own);  // by a shell for glibc
  if (system(line) != 0) abort();
  FILE* pipe = popen(line, "r");  // allocates once
  if (!pipe || pclose(pipe) != 0) abort();
}

static void on_signal(int unused) {
  (void)unused;
  pairs(3);
}

static void signals(void) {
  static char stack[stack_bytes];
  const stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction action = {.sa_handler = on_signal};
  sigaltstack(&other, NULL);
  for (int i = 0; i < 100; i++) {
    action.sa_flags = i % 2 ? SA_ONSTACK : 0;
    sigaction(SIGUSR1, &action, NULL);
    pairs(1);
    raise(SIGUSR1);
  }
}

static void loads(const char* library) {
  if (dlopen("/nonexistent.so", RTLD_NOW)) abort();
  for (int i = 0; i < 3; i++) {
    void* module = dlopen(library, RTLD_NOW);
    void (*use)(int) = NULL;
    if (module) *(void**)&use = dlsym(module, "use");
    if (!use) abort();
    use(10);
    dlclose(module);
  }
}

static int order(const void* a, const void* b) {
  kept = malloc(31);
  return *(const int*)a - *(const int*)b;
}
__attribute__((noinline)) static void inner(void) {
  kept = malloc(30);
  __asm__ volatile("");
}
__attribute__((noinline)) static void outer(void) {
  inner();
  __asm__ volatile("");
}
static void stacks(void) {
  int numbers[] = {2, 1};
  outer();
  qsort(numbers, 2, sizeof *numbers, order);
  kept = strdup("of libc");
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  own = argv[0];
  if (strcmp(how, "all") == 0) all_functions(100);
  if (strcmp(how, "threads") == 0) run_threads(run_pairs, 8, NULL);
  if (strcmp(how, "crowd") == 0) crowd();
  if (strcmp(how, "guarded") == 0) guarded();
  if (strcmp(how, "forks") == 0) forks();
  if (strcmp(how, "starts") == 0) starts();
  if (strcmp(how, "signals") == 0) signals();
  if (strcmp(how, "loads") == 0) loads(argv[2]);
  if (strcmp(how, "stacks") == 0) stacks();
  if (strcmp(how, "waits") == 0) pause();
  return 0;
}
#endif
