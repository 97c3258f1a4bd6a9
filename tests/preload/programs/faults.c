// faults WHAT [ARGUMENT]: does things that a tracer may not expect. Sizes from 30000 on say which part of the program
// allocates.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;
static pthread_key_t key;

static void* churn(void* unused) {
  while (!stop) {
    free(malloc(1000));
    for (volatile int spin = 0; spin < 3000; spin++) continue;
  }
  return unused;
}

static void start(pthread_t* threads, int count, void* (*body)(void*)) {
  for (intptr_t i = 0; i < count; i++) pthread_create(&threads[i], NULL, body, (void*)i);
}

static void join(const pthread_t* threads, int count) {
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

static void* briefly(void* number) {
  free(malloc(30000 + (size_t)(intptr_t)number));
  return NULL;
}

// 1,000 threads, at most ten at once.
static int threads(void) {
  pthread_t batch[10];
  for (intptr_t i = 0; i < 1000; i += 10) {
    for (int t = 0; t < 10; t++) pthread_create(&batch[t], NULL, briefly, (void*)(i + t));
    join(batch, 10);
  }
  return 0;
}

static void at_thread_exit(void* block) {
  free(block);
  free(malloc(31001));
}

static void* with_destructor(void* unused) {
  pthread_setspecific(key, malloc(31000));
  return unused;
}

// Threads that free blocks in their destructors while others allocate.
static int exits(void) {
  pthread_t busy[3], batch[10];
  pthread_key_create(&key, at_thread_exit);
  start(busy, 3, churn);
  for (int i = 0; i < 20; i++) {
    start(batch, 10, with_destructor);
    join(batch, 10);
  }
  stop = 1;
  join(busy, 3);
  return 0;
}

static int plugins(const char* path) {
  for (int i = 0; i < 200; i++) {
    void* library = dlopen(path, RTLD_NOW);
    if (!library || dlclose(library) != 0) return 1;
  }
  return 0;
}

// Frees five blocks that libc's malloc gives past the tracer: by its address, which a library of RTLD_DEEPBIND finds;
// or, not freed, in a namespace of its own.
static int bypasses(const char* path, bool has_namespace) {
  void* library = has_namespace ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW) : dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
  if (!library) return 1;
  void* (*its_malloc)(size_t);
  *(void**)&its_malloc = dlsym(library, "malloc");
  for (int i = 0; i < 5; i++) {
    void* block = its_malloc(36000);
    if (!has_namespace) free(block);
  }
  return 0;
}

// A library that the loader binds past the tracer calls malloc as others do.
static int is_bound_deeply(const char* path, int how) {
  for (int i = 1; i <= 3; i++) {
    void (*use)(int);
    void* library = dlopen(path, how | RTLD_DEEPBIND);
    if (!library) return 1;
    *(void**)&use = dlsym(library, "use_plugin");
    use(10 * i);
    dlclose(library);
  }
  return 0;
}

static void* load_often(void* path) {
  for (int i = 0; i < 100; i++) {
    if (is_bound_deeply(path, RTLD_NOW)) abort();
  }
  return NULL;
}

// Four threads load libraries of their own at once: `path` and a digit.
static int loads_at_once(const char* path) {
  enum { count = 4 };
  pthread_t threads[count];
  char paths[count][4096];
  for (int i = 0; i < count; i++) {
    snprintf(paths[i], sizeof paths[i], "%s%d", path, i);
    pthread_create(&threads[i], NULL, load_often, paths[i]);
  }
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  return 0;
}

// Overwrites the memory after the newest block; malloc notices, and calls abort.
static int corrupts(void) {
  char* block = malloc(33000);
  memset(block + malloc_usable_size(block), 1, 8);
  free(malloc(400000));
  return malloc(120000) == NULL;
}

static void* crash(void* unused) {
  free(malloc(33001));
  *(volatile int*)8 = 1;
  return unused;
}

static int crashes(void) {
  pthread_t busy[3], last;
  start(busy, 3, churn);
  start(&last, 1, crash);
  join(&last, 1);
  return 1;
}

static void* end_all(void* unused) {
  free(malloc(33002));
  _exit(9);
  return unused;
}

static int exit_in_thread(void) {
  pthread_t busy[3], last;
  start(busy, 3, churn);
  start(&last, 1, end_all);
  join(&last, 1);
  return 1;
}

static int wait_for(pid_t child) {
  int status = 1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

// Makes 2 to the power of `depth` processes.
static int tree(int depth) {
  for (; depth > 0; depth--) {
    free(malloc(34000 + (size_t)depth));
    pid_t child = fork();
    if (child == 0) continue;
    tree(depth - 1);
    return wait_for(child);
  }
  free(malloc(34000));
  return 0;
}

static int chain(char* self, int length) {
  char left[16];
  sprintf(left, "%d", length - 1);
  free(malloc(35000 + (size_t)length));
  if (length > 1) execl(self, self, "chain", left, (char*)NULL);
  return length > 1;
}

static int many(size_t size) {
  for (int i = 0; i < 1000; i++) free(malloc(size));
  return 0;
}

static int daemonise(void) {
  if (fork() != 0) return 0;
  setsid();
  if (fork() != 0) _exit(0);
  if (chdir("/") != 0) return 1;
  umask(0);
  closefrom(0);
  open("/dev/null", O_RDWR);
  dup(0);
  dup(0);
  return many(36000);
}

static int change_root(const char* folder) {
  if (chroot(folder) != 0 || chdir("/") != 0) return 1;
  return many(37000);
}

// A fork without pthread_atfork's handlers.
static int fork_quietly(void) {
  free(malloc(38000));
  pid_t child = _Fork();
  if (child != 0) return wait_for(child);
  free(malloc(38001));
  _exit(0);
}

static int in_our_memory(void* block) {
  free(block);
  free(malloc(38004));
  return 3;
}

// Children unknown to libc: one by the system call, one that shares memory and thread data while the parent waits.
static int clone_by_hand(void) {
  static char stack[1 << 16];
  pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    free(malloc(38003));
    _exit(0);
  }
  if (wait_for(child) != 0) return 1;
  child = clone(in_our_memory, stack + sizeof stack, CLONE_VM | SIGCHLD, malloc(38005));
  if (wait_for(child) != 3) return 2;
  free(malloc(38006));
  return 0;
}

// A second libc, with a malloc of its own that is not interposed.
static int other_namespace(void) {
  void* libc = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
  void* (*theirs)(size_t);
  void (*give_back)(void*);
  if (!libc) return 1;
  *(void**)&theirs = dlsym(libc, "malloc");
  *(void**)&give_back = dlsym(libc, "free");
  for (int i = 0; i < 1000; i++) {
    give_back(theirs(38007));
    free(malloc(38008));
  }
  return dlclose(libc);
}

// As servers do for ps: copies the strings of the environment, and overwrites the old ones.
static int set_title(void) {
  char** copy = calloc(1000, sizeof *copy);
  for (int i = 0; environ[i] && i < 999; i++) copy[i] = strdup(environ[i]);
  for (int i = 0; environ[i]; i++) memset(environ[i], 'x', strlen(environ[i]));
  environ = copy;
  pid_t child = fork();
  if (child != 0) return wait_for(child);
  free(malloc(38002));
  exit(0);
}

// Many events in two halves. In between it waits for a line, so that a test can act.
static int steady(int blocks) {
  static void* kept[256];
  char line[16];
  uint32_t random = 1;
  for (int half = 0; half < 2; half++) {
    for (int i = 0; i < blocks; i++) {
      random = random * 1664525 + 1013904223;
      void** place = &kept[random >> 24];
      free(*place);
      *place = malloc(100 + (random >> 8 & 1023));
    }
    write(STDOUT_FILENO, "half\n", 5);
    if (half == 0 && read(STDIN_FILENO, line, sizeof line) < 0) return 1;
  }
  return 5;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const char* argument = argc > 2 ? argv[2] : "0";
  if (strcmp(what, "threads") == 0) return threads();
  if (strcmp(what, "exits") == 0) return exits();
  if (strcmp(what, "plugins") == 0) return plugins(argument);
  if (strcmp(what, "deepbind") == 0) return bypasses(argument, false);
  if (strcmp(what, "deepbound_lazy") == 0) return is_bound_deeply(argument, RTLD_LAZY);
  if (strcmp(what, "deepbound_now") == 0) return is_bound_deeply(argument, RTLD_NOW);
  if (strcmp(what, "deepbound_at_once") == 0) return loads_at_once(argument);
  if (strcmp(what, "namespace") == 0) return bypasses(argument, true);
  if (strcmp(what, "corrupts") == 0) return corrupts();
  if (strcmp(what, "crashes") == 0) return crashes();
  if (strcmp(what, "exit_in_thread") == 0) return exit_in_thread();
  if (strcmp(what, "tree") == 0) return tree(atoi(argument));
  if (strcmp(what, "chain") == 0) return chain(argv[0], atoi(argument));
  if (strcmp(what, "daemonise") == 0) return daemonise();
  if (strcmp(what, "chroot") == 0) return change_root(argument);
  if (strcmp(what, "fork_quietly") == 0) return fork_quietly();
  if (strcmp(what, "clone_by_hand") == 0) return clone_by_hand();
  if (strcmp(what, "other_namespace") == 0) return other_namespace();
  if (strcmp(what, "set_title") == 0) return set_title();
  if (strcmp(what, "steady") == 0) return steady(atoi(argument));
  return 2;
}
