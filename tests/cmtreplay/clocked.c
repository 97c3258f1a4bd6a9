/* An allocator that purges by the clock, for tests of the recorded clock. It gives the pages of a freed block back when
 * they have been free for 100 ms:
 *
 *     BY_CALLS    in the first call after that.
 *     BY_THREAD   in a thread that sleeps on a condition for 100 ms at a time, and that every free wakes.
 *
 *     BY_SLEEPS   has four threads that sleep in four other ways, and purges nothing.
 *
 *     BY_STAMPS   as BY_CALLS, but each malloc also reads the processor's time stamp counter.
 *     BY_PIPE     as BY_THREAD, but the thread waits for a pipe.
 *     BY_LOCKS    as BY_CALLS, but each malloc also waits for locks that nobody leaves, 1 ms each.
 *
 * CLOCK_LOG names a log file. Each call with a size of 1000 and more, each free, and each wake-up of a thread writes a
 * line to it. The line has the time in microseconds since the first line. Blocks are never used again. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { header_bytes = 4096, purge_us = 100000, blocks_max = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static char* next;
static struct {
  char* begin;
  size_t bytes;
  int64_t freed_us;
} kept[blocks_max];
static int kept_count;
static int log_fd = -1;

static int64_t microseconds(clockid_t clock) {
  static int64_t first[16];
  struct timespec now;
  clock_gettime(clock, &now);
  const int64_t us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
  if (!first[clock]) first[clock] = us;
  return us - first[clock];
}

/* -1: they do not agree. */
static int64_t clocks_us(void) {
  static int64_t first, first_s;
  static const clockid_t clocks[] = {CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_REALTIME};
  const int64_t us = microseconds(CLOCK_MONOTONIC);
  struct timeval day;
  gettimeofday(&day, NULL);
  const int64_t day_us = (int64_t)day.tv_sec * 1000000 + day.tv_usec;
  if (!first) first = day_us;
  if (!first_s) first_s = time(NULL);
  int agree = day_us - first == us && time(NULL) - first_s == (first % 1000000 + us) / 1000000;
  for (int i = 0; i < 4; ++i) agree &= microseconds(clocks[i]) == us;
  return agree ? us : -1;
}

/* Another thread may set the clock between two readings. */
static int64_t now_us(void) {
  for (;;) {
    const int64_t before = microseconds(CLOCK_MONOTONIC), us = clocks_us();
    if (us >= 0 || microseconds(CLOCK_MONOTONIC) == before) return us;
  }
}

static void say(const char* what, int64_t us) {
  char line[64];
  const int length = snprintf(line, sizeof line, "%s %lld\n", what, (long long)us);
  if (log_fd >= 0 && write(log_fd, line, (size_t)length) != length) abort();
}

static void purge(int64_t us) {
  int left = 0;
  for (int i = 0; i < kept_count; ++i) {
    if (us - kept[i].freed_us >= purge_us)
      madvise(kept[i].begin, kept[i].bytes, MADV_DONTNEED);
    else
      kept[left++] = kept[i];
  }
  kept_count = left;
}

#if defined BY_THREAD
static void* run_thread(void* unused) {
  pthread_mutex_lock(&lock);
  for (;;) {
    struct timeval now;
    gettimeofday(&now, NULL);
    struct timespec limit = {.tv_sec = now.tv_sec, .tv_nsec = now.tv_usec * 1000 + purge_us * 1000};
    if (limit.tv_nsec >= 1000000000) limit = (struct timespec){limit.tv_sec + 1, limit.tv_nsec - 1000000000};
    const int error = pthread_cond_timedwait(&freed, &lock, &limit);
    const int64_t us = now_us();
    say(error ? "tick" : "signal", us);
    purge(us);
  }
  return unused;
}
static void* (*const bodies[])(void*) = {run_thread};
#elif defined BY_PIPE
static int ends[2];
static void* run_pipe(void* unused) {
  usleep(1000);
  char byte;
  return pipe(ends) == 0 && read(ends[0], &byte, 1) == 1 ? unused : NULL;
}
static void* (*const bodies[])(void*) = {run_pipe};
#elif defined BY_SLEEPS
static void* run_nanosleep(void* unused) {
  for (const struct timespec period = {.tv_nsec = 70000000};;) {
    nanosleep(&period, NULL);
    say("nanosleep", now_us());
  }
  return unused;
}

static void* run_clock_nanosleep(void* unused) {
  struct timespec due;
  clock_gettime(CLOCK_MONOTONIC, &due);
  for (;;) {
    due.tv_nsec += 110000000;
    if (due.tv_nsec >= 1000000000) due = (struct timespec){due.tv_sec + 1, due.tv_nsec - 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    say("clock_nanosleep", now_us());
  }
  return unused;
}

static void* run_usleep(void* unused) {
  for (;;) {
    usleep(130000);
    say("usleep", now_us());
  }
  return unused;
}

static void* run_poll(void* unused) {
  for (;;) {
    poll(NULL, 0, 170);
    say("poll", now_us());
  }
  return unused;
}
static void* (*const bodies[])(void*) = {run_nanosleep, run_clock_nanosleep, run_usleep, run_poll};
#else
static void* (*const bodies[])(void*) = {NULL};
#endif

__attribute__((constructor)) static void open_log(void) {
  const char* const path = getenv("CLOCK_LOG");
  if (path) log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  now_us();
  pthread_t thread;
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies && bodies[i]; ++i)
    pthread_create(&thread, NULL, bodies[i], NULL);
}

#if defined BY_LOCKS
static struct timespec limit_ms(clockid_t clock) {
  struct timespec limit;
  clock_gettime(clock, &limit);
  limit.tv_nsec += 1000000;
  return limit.tv_nsec < 1000000000 ? limit : (struct timespec){limit.tv_sec + 1, limit.tv_nsec - 1000000000};
}

static int64_t system_ns(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void wait_for_locks(void) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
  static sem_t semaphore;
  static int is_held;
  if (!is_held) is_held = pthread_mutex_lock(&mutex) == 0 && pthread_rwlock_rdlock(&rwlock) == 0;
  for (int way = 0; way < 6; ++way) {
    const clockid_t clock = way % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    const struct timespec limit = limit_ms(clock);
    const int64_t begin = system_ns();
    const int error = way == 0   ? pthread_mutex_timedlock(&mutex, &limit)
                      : way == 1 ? pthread_mutex_clocklock(&mutex, clock, &limit)
                      : way == 2 ? pthread_rwlock_timedwrlock(&rwlock, &limit)
                      : way == 3 ? pthread_rwlock_clockwrlock(&rwlock, clock, &limit)
                      : way == 4 ? (sem_timedwait(&semaphore, &limit) ? errno : 0)
                                 : (sem_clockwait(&semaphore, clock, &limit) ? errno : 0);
    say(error == ETIMEDOUT && system_ns() - begin >= 900000 ? "waited" : "early", way);
  }
}
#endif

void* malloc(size_t size) {
  pthread_mutex_lock(&lock);
  if (!next) next = mmap(NULL, 1L << 36, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
#if defined BY_LOCKS
  if (size >= 1000) wait_for_locks();
#endif
#if defined BY_STAMPS
  if (size >= 1000) __builtin_ia32_rdtsc();
#endif
  if (size >= 1000) {
    const int64_t us = now_us();
    say("malloc", us);
    if (!bodies[0]) purge(us);
  }
  char* const block = next + header_bytes;
  memcpy(next, &size, sizeof size);
  next += header_bytes + (size + header_bytes - 1) / header_bytes * header_bytes;
  pthread_mutex_unlock(&lock);
  return block;
}

void free(void* block) {
  if (!block) return;
  size_t size;
  memcpy(&size, (char*)block - header_bytes, sizeof size);
  if (size < 1000) return;
  pthread_mutex_lock(&lock);
  const int64_t us = now_us();
  say("free", us);
  if (!bodies[0]) purge(us);
  if (kept_count == blocks_max) abort();
  kept[kept_count].begin = block;
  kept[kept_count].bytes = size;
  kept[kept_count++].freed_us = us;
  pthread_cond_signal(&freed);
  pthread_mutex_unlock(&lock);
}

void* calloc(size_t count, size_t size) { return malloc(count * size); }

void* realloc(void* old, size_t size) {
  void* const block = malloc(size);
  size_t old_size = 0;
  if (old) memcpy(&old_size, (char*)old - header_bytes, sizeof old_size);
  if (old) memcpy(block, old, old_size < size ? old_size : size);
  free(old);
  return block;
}

int posix_memalign(void** block, size_t alignment, size_t size) {
  (void)alignment; /* all blocks begin at a page */
  *block = malloc(size);
  return 0;
}
