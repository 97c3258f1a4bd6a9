/* Libraries with a fault each, for tests:
 *
 *     FAULT_none                 loads well, and has no malloc.
 *     FAULT_at_load              ends the process that loads it.
 *     FAULT_exits                ends it, too, with status 0, or with words and EXIT_STATUS (in its environment).
 *     FAULT_at_every_call        refuses every request.
 *     FAULT_lowers_limit         the same, and lowers the limit of the process's address space.
 *     FAULT_set_by_environment   takes WASTE_KIB (in its environment) KiB more with a request for 100 bytes.
 *     FAULT_at_size              is glibc's malloc except for these sizes:
 *
 *         22,222      writes a line to the standard error.
 *         33,333      forks a child that sleeps, and writes its number to a file "child".
 *         44,444      forks a child that returns from the call, as this process does.
 *         55,555      kills its process group.
 *         66,666      raises a trap.
 *         77,777      never returns, and first makes a file "hanging", for which the test waits.
 *         88,888      is refused
 *         99,999      kills the process
 *         3,000,000   gets a block of which only the first page can be written
 *         more than there can be   ends the process */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

#ifdef FAULT_none
EXPORTED int nothing_to_allocate_with = 1;
#endif

#ifdef FAULT_at_load
__attribute__((constructor)) static void end_process(void) { __builtin_trap(); }
#endif

#ifdef FAULT_exits
__attribute__((constructor)) static void end_process(void) {
  const char* const status = getenv("EXIT_STATUS");
  if (status) fputs("no licence\n", stderr);
  _exit(status ? atoi(status) : 0);
}
#endif

#ifdef FAULT_lowers_limit
__attribute__((constructor)) static void lower_limit(void) {
  const struct rlimit limit = {32 << 20, 32 << 20};
  setrlimit(RLIMIT_AS, &limit);
}
#endif

#if defined(FAULT_at_every_call) || defined(FAULT_lowers_limit)
EXPORTED void* malloc(size_t size) { return (void)size, NULL; }
EXPORTED void* calloc(size_t count, size_t size) { return (void)count, (void)size, errno = ENOMEM, NULL; }
EXPORTED void* realloc(void* block, size_t size) { return (void)block, (void)size, NULL; }
EXPORTED void free(void* block) { (void)block; }
#endif

#ifdef FAULT_at_size
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void __libc_free(void*);

static void sleep_as_child(void) {
  FILE* const file = fopen("child", "w");
  fprintf(file, "%d\n", (int)getpid());
  fclose(file);
  sleep(100);
  _exit(0);
}

EXPORTED void* malloc(size_t size) {
  if (size == 66666 || size > PTRDIFF_MAX) __builtin_trap();
  if (size == 22222) dprintf(STDERR_FILENO, "22,222 bytes are asked for\n");
  if (size == 33333 && fork() == 0) sleep_as_child();
  if (size == 44444) fork();
  if (size == 55555) kill(0, SIGKILL);
  if (size == 88888) return NULL;
  if (size == 99999) kill(getpid(), SIGKILL);
  if (size == 3000000) {
    char* const block = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(block, 4096, PROT_READ | PROT_WRITE);
    return block;
  }
  if (size == 77777) {
    close(open("hanging", O_CREAT | O_WRONLY, 0600));
    for (;;) pause();
  }
  return __libc_malloc(size);
}

EXPORTED void* calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
EXPORTED void* realloc(void* block, size_t size) { return __libc_realloc(block, size); }
EXPORTED void free(void* block) { __libc_free(block); }
#endif

#ifdef FAULT_set_by_environment
static char range[16 << 20];
static size_t next = 0;
char* getenv(const char* name);

/* With a request for 100 bytes goes the waste. */
EXPORTED void* malloc(size_t size) {
  const char* text = size == 100 ? getenv("WASTE_KIB") : NULL;
  size_t kib = 0;
  for (; text && *text; ++text) kib = kib * 10 + (size_t)(*text - '0');
  for (size_t at = 0; at < kib << 10; at += 4096) range[next + at] = 1;
  next += kib << 10;
  if (size > sizeof range - next) return NULL;
  void* const block = range + next;
  next += (size + 16) & ~(size_t)15;
  return block;
}

EXPORTED void free(void* block) { (void)block; }
#endif
