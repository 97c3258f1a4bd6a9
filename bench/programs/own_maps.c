/* Preloaded into a program before an allocator, it separates the memory that the program maps from the memory that its
 * allocator maps. Two kinds of memory become private mappings of a memfd: anonymous mappings that code outside
 * of the allocator asks for, and stacks of threads. The file smaps shows them by the name "/memfd:program". The program
 * sees no difference.
 *
 *     cc -O2 -shared -fPIC -o own_maps.so own_maps.c
 *     SMAPS_LOG=app.smaps LD_PRELOAD="./own_maps.so libjemalloc.so.2" app
 *
 * It appends the program's smaps to a file after every 3 ms of CPU time or so, after each sixteenth more calls, and at
 * the end. Samples are equal on an idle and on a busy machine, because the clock is CPU time and the program reads its
 * own smaps. A line before each sample reports its place in the run: the number of calls to the allocator so far, and
 * the elapsed time without the samples. It also has the kernel's high-water mark of resident memory since the last
 * sample (VmHWM, which each sample resets), so that no peak between two samples is missed:
 *
 *     Calls: 123456 us: 78901 high: 45678 kB
 *
 * The caller is identified by the object that the call returns to. The C library's malloc maps memory by internal
 * calls, which cannot be intercepted and stay as they are. For measurements only: stacks of threads are never released.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void* allocator; /* the link map of the object that malloc is in */
static int fd = -1;

static void* object_of(void* address) {
  struct dl_find_object found;
  return _dl_find_object(address, &found) == 0 ? found.dlfo_link_map : NULL;
}

__attribute__((constructor)) static void open_memfd(void) {
  fd = memfd_create("program", MFD_CLOEXEC);
  if (fd >= 0 && ftruncate(fd, (off_t)1 << 46) == 0) allocator = object_of(dlsym(RTLD_NEXT, "malloc"));
}

static char text[1 << 20];
static int log_fd = -1;
static timer_t timer; /* of the process's CPU time, by a signal that programs leave alone */
static int busy;
static long began_us, sampling_us; /* elapsed time at the start, and in samples */
static unsigned long calls;        /* of all threads */
static unsigned long call_looked_at = 1000;

static long wall_microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static long cpu_microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* The next look, after as much of the program's own time as this one took, twice. */
static void wind_up(long cost) {
  const long distance = cost * 2 > 3000 ? cost * 2 : 3000;
  const struct itimerspec once = {{0, 0}, {distance / 1000000, distance % 1000000 * 1000}};
  timer_settime(timer, 0, &once, NULL);
}

/* Since the last call. 0: unknown. */
static long high_water_kb(void) {
  const int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  const ssize_t got = status < 0 ? 0 : read(status, text, sizeof text - 1);
  close(status);
  text[got > 0 ? got : 0] = 0;
  const char* const line = strstr(text, "VmHWM:");
  const int resets = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  const int is_reset = resets >= 0 && write(resets, "5", 1) == 1;
  close(resets);
  return line && is_reset ? atol(line + strlen("VmHWM:")) : 0;
}

static void log_smaps(int number) {
  (void)number;
  const long begin = cpu_microseconds();
  if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) return;
  const int error = errno;
  const long wall = wall_microseconds();
  const long high = high_water_kb();
  const int length = snprintf(text, sizeof text, "Calls: %lu us: %ld high: %ld kB\n",
                              __atomic_load_n(&calls, __ATOMIC_RELAXED), wall - began_us - sampling_us, high);
  if (write(log_fd, text, (size_t)length) != length) close(log_fd);
  const int smaps = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
  for (ssize_t got; smaps >= 0 && (got = read(smaps, text, sizeof text)) > 0;) {
    if (write(log_fd, text, (size_t)got) != got) break;
  }
  close(smaps);
  errno = error;
  if (write(log_fd, "\n", 1) != 1) close(log_fd);
  wind_up(cpu_microseconds() - begin);
  sampling_us += wall_microseconds() - wall;
  __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void start_log(void) {
  const char* const path = getenv("SMAPS_LOG");
  if (!path) return;
  began_us = wall_microseconds();
  log_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  unsetenv("SMAPS_LOG"); /* the log is of this program, not of those that it starts */
  const struct sigaction action = {.sa_handler = log_smaps, .sa_flags = SA_RESTART};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 9};
  if (sigaction(event.sigev_signo, &action, NULL) != 0 || timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) != 0) {
    close(log_fd);
    log_fd = -1;
    return;
  }
  wind_up(0);
}

__attribute__((destructor)) static void end_log(void) {
  if (log_fd >= 0) log_smaps(0);
}

static void* map(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  return (void*)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  const int anonymous = (flags & MAP_ANONYMOUS) && (flags & MAP_TYPE) == MAP_PRIVATE;
  void* const caller = object_of(__builtin_return_address(0));
  if (!allocator || !anonymous || caller == allocator) return map(address, bytes, protection, flags, file, offset);
  return map(address, bytes, protection, flags & ~MAP_ANONYMOUS, fd, 0);
}

void* mmap64(void*, size_t, int, int, int, off_t) __attribute__((alias("mmap")));

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*begin)(void*), void* argument) {
  static int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (!create) *(void**)&create = dlsym(RTLD_NEXT, "pthread_create");
  if (attributes || !allocator) return create(thread, attributes, begin, argument);
  enum { stack_bytes = 8 << 20 };
  void* const stack = map(NULL, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  if (stack == MAP_FAILED) return EAGAIN;
  pthread_attr_t own;
  pthread_attr_init(&own);
  pthread_attr_setstack(&own, stack, stack_bytes);
  const int error = create(thread, &own, begin, argument);
  pthread_attr_destroy(&own);
  return error;
}

/* A sample after each sixteenth more, too: a server answers a hundred requests in the 3 ms. */
static void count_call(void) {
  const unsigned long number = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  if (number != __atomic_load_n(&call_looked_at, __ATOMIC_RELAXED)) return;
  __atomic_store_n(&call_looked_at, number + number / 16, __ATOMIC_RELAXED);
  if (log_fd >= 0) log_smaps(0);
}

/* Calls are counted and passed on: malloc's kin, and operator new and delete under their mangled names. */
#define PASS_ON(result, name, arguments, ...)            \
  result name arguments {                                \
    static result(*next) arguments;                      \
    if (!next) *(void**)&next = dlsym(RTLD_NEXT, #name); \
    count_call();                                        \
    return next(__VA_ARGS__);                            \
  }

PASS_ON(void*, malloc, (size_t bytes), bytes)
PASS_ON(void*, calloc, (size_t count, size_t bytes), count, bytes)
PASS_ON(void*, realloc, (void* block, size_t bytes), block, bytes)
PASS_ON(void*, reallocarray, (void* block, size_t count, size_t bytes), block, count, bytes)
PASS_ON(void, free, (void* block), block)
PASS_ON(int, posix_memalign, (void** block, size_t alignment, size_t bytes), block, alignment, bytes)
PASS_ON(void*, aligned_alloc, (size_t alignment, size_t bytes), alignment, bytes)
PASS_ON(void*, memalign, (size_t alignment, size_t bytes), alignment, bytes)
PASS_ON(void*, _Znwm, (size_t bytes), bytes)
PASS_ON(void*, _Znam, (size_t bytes), bytes)
PASS_ON(void*, _ZnwmRKSt9nothrow_t, (size_t bytes, const void* tag), bytes, tag)
PASS_ON(void*, _ZnamRKSt9nothrow_t, (size_t bytes, const void* tag), bytes, tag)
PASS_ON(void*, _ZnwmSt11align_val_t, (size_t bytes, size_t alignment), bytes, alignment)
PASS_ON(void, _ZdlPv, (void* block), block)
PASS_ON(void, _ZdaPv, (void* block), block)
PASS_ON(void, _ZdlPvm, (void* block, size_t bytes), block, bytes)
PASS_ON(void, _ZdaPvm, (void* block, size_t bytes), block, bytes)
PASS_ON(void, _ZdlPvSt11align_val_t, (void* block, size_t alignment), block, alignment)
PASS_ON(void, _ZdlPvmSt11align_val_t, (void* block, size_t bytes, size_t alignment), block, bytes, alignment)
