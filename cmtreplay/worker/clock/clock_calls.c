/* Replaces the functions of clock_calls.h. If the allocator makes a thread that carries out the trace sleep, this
 * thread sleeps by the system's clock. Example: a spin lock backs off until another thread leaves it, and the recorded
 * clock does not move meanwhile. All other threads are the allocator's, and sleep by the recorded clock. Clocks of
 * processor time are the system's.
 *
 * On each clock of the system the recorded clock begins at a fixed time, so that all runs read the same times. These
 * times are so far apart that the time limit of a condition shows which clock it belongs to. */
#define _GNU_SOURCE
#include "cmtreplay/worker/clock/clock_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cmtreplay/worker/clock/recorded_clock.h"
#include "cmtreplay/worker/runner.h"

static const uint64_t second_ns = 1000000000;
static const uint64_t monotonic_begin_ns = (uint64_t)1000000 * 1000000000;
static const uint64_t realtime_begin_ns = (uint64_t)1700000000 * 1000000000;

static struct {
  int (*clock_gettime)(clockid_t, struct timespec*);
  int (*clock_nanosleep)(clockid_t, int, const struct timespec*, struct timespec*);
  int (*timed_wait)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
  int (*clock_wait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  int (*mutex_timed)(pthread_mutex_t*, const struct timespec*);
  int (*mutex_clock)(pthread_mutex_t*, clockid_t, const struct timespec*);
  int (*read_timed)(pthread_rwlock_t*, const struct timespec*);
  int (*read_clock)(pthread_rwlock_t*, clockid_t, const struct timespec*);
  int (*write_timed)(pthread_rwlock_t*, const struct timespec*);
  int (*write_clock)(pthread_rwlock_t*, clockid_t, const struct timespec*);
  int (*semaphore_timed)(sem_t*, const struct timespec*);
  int (*semaphore_clock)(sem_t*, clockid_t, const struct timespec*);
  int (*poll)(struct pollfd*, nfds_t, int);
} library;

static int is_recorded;
static int was_read;

/* Runs before the constructors of all libraries. An allocator may call even earlier, when the loader allocates. Then
 * only the C library's functions are looked up. */

static void* find(const char* name) { return dlsym(RTLD_NEXT, name); }

static void find_library_calls(void) {
  *(void**)&library.clock_gettime = find("clock_gettime");
  *(void**)&library.clock_nanosleep = find("clock_nanosleep");
  *(void**)&library.timed_wait = find("pthread_cond_timedwait");
  *(void**)&library.clock_wait = find("pthread_cond_clockwait");
  *(void**)&library.mutex_timed = find("pthread_mutex_timedlock");
  *(void**)&library.mutex_clock = find("pthread_mutex_clocklock");
  *(void**)&library.read_timed = find("pthread_rwlock_timedrdlock");
  *(void**)&library.read_clock = find("pthread_rwlock_clockrdlock");
  *(void**)&library.write_timed = find("pthread_rwlock_timedwrlock");
  *(void**)&library.write_clock = find("pthread_rwlock_clockwrlock");
  *(void**)&library.semaphore_timed = find("sem_timedwait");
  *(void**)&library.semaphore_clock = find("sem_clockwait");
  *(void**)&library.poll = find("poll");
  *(void**)&clock_host.wait = find("pthread_cond_wait");
  *(void**)&clock_host.signal = find("pthread_cond_signal");
  *(void**)&clock_host.broadcast = find("pthread_cond_broadcast");
}

static void need_library_calls(void) {
  if (!library.poll) find_library_calls();
}

/* Reads the control region, whose descriptor is the worker's first argument (worker.c). To shift addresses it makes a
 * mapping that nobody uses: it moves all later mappings. */
static void open_clock(int count, char** arguments, char** variables) {
  (void)variables;
  find_library_calls();
  if (count < 2) return;
  const int fd = atoi(arguments[1]);
  struct control control;
  if (pread(fd, &control, sizeof control, 0) != (ssize_t)sizeof control) return;
  is_recorded = control.clock_recorded != 0;
  if (!is_recorded || control.address_shift == 0) return;
  mmap(NULL, control.address_shift * (uint64_t)address_shift_bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

__attribute__((section(".preinit_array"), used)) static void (*const open_clock_first)(int, char**,
                                                                                       char**) = open_clock;

int clock_is_recorded(void) { return is_recorded; }
int clock_was_read(void) { return __atomic_load_n(&was_read, __ATOMIC_RELAXED); }
void forget_clock_readings(void) { __atomic_store_n(&was_read, 0, __ATOMIC_RELAXED); }

/* The calling thread: the trace's or the allocator's. */

enum role { role_unknown, role_of_trace, role_of_allocator };

/* Whether the calling thread sleeps by the recorded clock. */
static int is_followed(void) {
  static __thread enum role role;
  if (!is_recorded || role == role_of_trace) return 0;
  if (role == role_unknown) role = current_lane || syscall(SYS_gettid) == getpid() ? role_of_trace : role_of_allocator;
  return role == role_of_allocator && recorded_clock_meet();
}

/* Reading. */

static struct timespec timespec_of(uint64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / second_ns), .tv_nsec = (long)(ns % second_ns)};
}

static uint64_t ns_of(const struct timespec* time) {
  return time->tv_sec < 0 ? 0 : (uint64_t)time->tv_sec * second_ns + (uint64_t)time->tv_nsec;
}

/* The time at which the recorded clock begins on a clock of the system. 0: the clock stays the system's. */
static uint64_t begin_of(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
      return realtime_begin_ns;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      return monotonic_begin_ns;
    default:
      return 0;
  }
}

static int system_time(clockid_t clock, struct timespec* time) {
  if (library.clock_gettime && !is_recorded) return library.clock_gettime(clock, time);
  return (int)syscall(SYS_clock_gettime, clock, time);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const uint64_t begin = begin_of(clock);
  if (begin && !was_read) __atomic_store_n(&was_read, 1, __ATOMIC_RELAXED);
  if (!begin || !is_recorded) return system_time(clock, time);
  is_followed();
  *time = timespec_of(begin + recorded_clock_ns());
  return 0;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  if (zone) *(struct timezone*)zone = (struct timezone){0};
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}

/* Sleeping. */

static uint64_t later(uint64_t ns) {
  const uint64_t now = recorded_clock_ns();
  return ns < never_due - now ? now + ns : never_due;
}

/* A time on the recorded clock. */
static uint64_t due_at(const struct timespec* time, uint64_t begin) {
  const uint64_t ns = ns_of(time);
  return ns > begin ? ns - begin : 0;
}

/* The time on the system's clock that is as far away as a time on the recorded clock is. */
static struct timespec system_due(clockid_t clock, const struct timespec* time, uint64_t begin) {
  struct timespec now;
  system_time(clock, &now);
  const uint64_t due = due_at(time, begin), recorded = recorded_clock_ns();
  return timespec_of(ns_of(&now) + (due > recorded ? due - recorded : 0));
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec* time, struct timespec* rest) {
  need_library_calls();
  const uint64_t begin = begin_of(clock);
  const int absolute = (flags & TIMER_ABSTIME) != 0;
  if (!begin || !is_recorded) return library.clock_nanosleep(clock, flags, time, rest);
  if (time->tv_nsec < 0 || time->tv_nsec >= (long)second_ns) return EINVAL;
  if (is_followed()) {
    recorded_clock_sleep(absolute ? due_at(time, begin) : later(ns_of(time)));
    return 0;
  }
  if (!absolute) return library.clock_nanosleep(clock, flags, time, rest);
  const struct timespec due = system_due(clock, time, begin);
  return library.clock_nanosleep(clock, flags, &due, rest);
}

int nanosleep(const struct timespec* time, struct timespec* rest) {
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, time, rest);
  if (error) errno = error;
  return error ? -1 : 0;
}

int usleep(useconds_t microseconds) {
  const struct timespec time = timespec_of((uint64_t)microseconds * 1000);
  return nanosleep(&time, NULL);
}

unsigned sleep(unsigned seconds) {
  struct timespec time = {.tv_sec = (time_t)seconds}, rest = {0};
  return nanosleep(&time, &rest) == 0 ? 0 : (unsigned)rest.tv_sec + (rest.tv_nsec >= (long)second_ns / 2);
}

int poll(struct pollfd* files, nfds_t count, int milliseconds) {
  need_library_calls();
  if (count != 0 || milliseconds <= 0 || !is_followed()) return library.poll(files, count, milliseconds);
  recorded_clock_sleep(later((uint64_t)milliseconds * 1000000));
  return 0;
}

/* Conditions. */

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  need_library_calls();
  if (!is_followed()) return clock_host.wait(condition, mutex);
  return recorded_clock_wait(condition, mutex, never_due);
}

int pthread_cond_timedwait(pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex,
                           const struct timespec* restrict limit) {
  need_library_calls();
  if (!is_recorded) return library.timed_wait(condition, mutex, limit);
  const int by_realtime = ns_of(limit) >= realtime_begin_ns / 2;
  const uint64_t begin = by_realtime ? realtime_begin_ns : monotonic_begin_ns;
  if (is_followed()) return recorded_clock_wait(condition, mutex, due_at(limit, begin));
  const struct timespec due = system_due(by_realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC, limit, begin);
  return library.timed_wait(condition, mutex, &due);
}

int pthread_cond_clockwait(pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex, clockid_t clock,
                           const struct timespec* restrict limit) {
  need_library_calls();
  const uint64_t begin = begin_of(clock);
  if (!is_recorded || !begin) return library.clock_wait(condition, mutex, clock, limit);
  if (is_followed()) return recorded_clock_wait(condition, mutex, due_at(limit, begin));
  const struct timespec due = system_due(clock, limit, begin);
  return library.clock_wait(condition, mutex, clock, &due);
}

int pthread_cond_signal(pthread_cond_t* condition) {
  need_library_calls();
  return is_recorded ? recorded_clock_signal(condition, 0) : clock_host.signal(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) {
  need_library_calls();
  return is_recorded ? recorded_clock_signal(condition, 1) : clock_host.broadcast(condition);
}

/* Locks and semaphores. It is not known here which thread leaves them, so all threads wait by the system's clock. They
 * wait as long as the limit is away on the recorded clock. */

static struct timespec system_limit(clockid_t clock, const struct timespec* limit) {
  const uint64_t begin = begin_of(clock);
  need_library_calls();
  if (!is_recorded || !begin || limit->tv_nsec < 0 || limit->tv_nsec >= (long)second_ns) return *limit;
  return system_due(clock, limit, begin);
}

#define WAIT_UNTIL(name, object, call)                                           \
  int name(object* restrict waited_for, const struct timespec* restrict limit) { \
    const struct timespec due = system_limit(CLOCK_REALTIME, limit);             \
    return library.call(waited_for, &due);                                       \
  }
#define WAIT_UNTIL_BY(name, object, call)                                                         \
  int name(object* restrict waited_for, clockid_t clock, const struct timespec* restrict limit) { \
    const struct timespec due = system_limit(clock, limit);                                       \
    return library.call(waited_for, clock, &due);                                                 \
  }

WAIT_UNTIL(pthread_mutex_timedlock, pthread_mutex_t, mutex_timed)
WAIT_UNTIL_BY(pthread_mutex_clocklock, pthread_mutex_t, mutex_clock)
WAIT_UNTIL(pthread_rwlock_timedrdlock, pthread_rwlock_t, read_timed)
WAIT_UNTIL_BY(pthread_rwlock_clockrdlock, pthread_rwlock_t, read_clock)
WAIT_UNTIL(pthread_rwlock_timedwrlock, pthread_rwlock_t, write_timed)
WAIT_UNTIL_BY(pthread_rwlock_clockwrlock, pthread_rwlock_t, write_clock)
WAIT_UNTIL(sem_timedwait, sem_t, semaphore_timed)
WAIT_UNTIL_BY(sem_clockwait, sem_t, semaphore_clock)
