/* The clock, the list of the allocator's threads, and the waits for them. One lock guards all. */
#define _GNU_SOURCE
#include "cmtreplay/worker/clock/recorded_clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmtreplay/protocol.h"

enum {
  check_ns = 1000 * 1000,           /* between two checks of a thread that does not sleep again */
  patience_ns = 1000 * 1000 * 1000, /* after this a thread that sleeps by something else is no longer waited for */
  sleep_ns_max = 1000 * 1000 * 1000
};
static const uint64_t patience_busy_ns =
    (uint64_t)5 * 1000 * 1000 * 1000; /* after this one that runs is no longer waited for */

/* A thread of the allocator. */
struct background_thread {
  int number;        /* 0: the entry is free */
  uint32_t is_busy;  /* it was given up while it ran, and has not slept since */
  uint64_t met;      /* the how many-th thread it was to be met */
  uint32_t asleep;   /* a futex */
  uint32_t by_clock; /* it was woken because its time had come */
  uint64_t due_ns;
  pthread_cond_t* condition; /* on which it sleeps, or NULL */
  pthread_mutex_t* mutex;
};

struct clock_host clock_host;

static uint64_t now_ns;

static uint32_t lock; /* guards all below; 0: free, 1: held, 2: held, and another thread waits */
static uint32_t advancing;
static uint32_t changes; /* a futex, which counts changes of the clock, of `advancing` and of threads */
static uint32_t known;   /* entries of `threads` that are or were used */
static uint64_t met;
static uint32_t strays;
static struct background_thread threads[background_threads_max];

static __thread struct background_thread* self;

static void acquire(void) {
  uint32_t expected = 0;
  if (__atomic_compare_exchange_n(&lock, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
  while (__atomic_exchange_n(&lock, 2, __ATOMIC_ACQUIRE) != 0) futex_wait(&lock, 2, sleep_ns_max, 0);
}

static void release(void) {
  if (__atomic_exchange_n(&lock, 0, __ATOMIC_RELEASE) == 2) futex_wake_all(&lock, 0);
}

static void announce_change(void) {
  __atomic_add_fetch(&changes, 1, __ATOMIC_RELEASE);
  futex_wake_all(&changes, 0);
}

/* Called with the lock held, and returns with it. Waits for a change without it. */
static void await_change(void) {
  const uint32_t seen = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
  release();
  futex_wait(&changes, seen, check_ns, 0);
  acquire();
}

static void set_clock(uint64_t ns) {
  if (ns > now_ns) __atomic_store_n(&now_ns, ns, __ATOMIC_RELEASE);
}

uint64_t recorded_clock_ns(void) { return __atomic_load_n(&now_ns, __ATOMIC_ACQUIRE); }

uint32_t recorded_clock_strays(void) { return __atomic_load_n(&strays, __ATOMIC_RELAXED); }

/* The allocator's threads. */

static struct background_thread* first_awake(void) {
  for (uint32_t i = 0; i < known; ++i) {
    if (!threads[i].asleep) return &threads[i];
  }
  return NULL;
}

char recorded_clock_kernel_state(int number) {
  char path[64] = "/proc/self/task/", digits[16], text[512];
  size_t count = 0;
  for (int rest = number; rest != 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
  size_t at = strlen(path);
  while (count > 0) path[at++] = digits[--count];
  memcpy(path + at, "/stat", sizeof "/stat");
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t bytes = read(fd, text, sizeof text - 1);
  close(fd);
  if (bytes <= 0) return 0;
  text[bytes] = 0;
  const char* const name_end = strrchr(text, ')');
  return name_end && name_end[1] ? name_end[2] : 0;
}

static int has_ended(int number) { return syscall(SYS_tgkill, getpid(), number, 0) != 0 && errno == ESRCH; }

static void free_entry(struct background_thread* thread) {
  *thread = (struct background_thread){.asleep = 1, .due_ns = never_due};
}

/* Decides whether to wait any longer for a thread. It no longer waits for a thread that has ended, or that waits for
 * something else than the clock. Such a thread counts as asleep until its time comes or it calls again. A thread may
 * also run on and on, perhaps until the clock, which does not move, reaches some time. It counts as asleep until it
 * sleeps. */
static void look_at(struct background_thread* thread, uint64_t waited_ns) {
  const char state = recorded_clock_kernel_state(thread->number);
  const int is_busy = state != 'S';
  if (state == 'Z' || has_ended(thread->number)) {
    free_entry(thread);
  } else if (state == 0) {
    thread->asleep = 1;
  } else if (waited_ns >= (is_busy ? patience_busy_ns : (uint64_t)patience_ns)) {
    thread->is_busy = is_busy ? 1 : 0;
    thread->asleep = 1;
    __atomic_add_fetch(&strays, 1, __ATOMIC_RELAXED);
  }
}

/* Called with the lock held. */
static void await_sleep_of(struct background_thread* thread) {
  const uint64_t begin = monotonic_ns(), its = thread->met;
  while (!thread->asleep && thread->met == its) {
    await_change();
    const uint64_t waited_ns = monotonic_ns() - begin;
    if (!thread->asleep && thread->met == its && waited_ns >= check_ns) look_at(thread, waited_ns);
  }
}

/* Returns whether any was awake. */
static int await_sleep(void) {
  int waited = 0;
  for (struct background_thread* thread; (thread = first_awake()); waited = 1) await_sleep_of(thread);
  return waited;
}

/* Waits until new threads are met: a thread that was awake may have started some. */
static void await_new_threads(void) {
  if (!clock_host.await_new_threads) return;
  release();
  clock_host.await_new_threads();
  acquire();
}

static struct background_thread* first_due(void) {
  struct background_thread* first = NULL;
  for (uint32_t i = 0; i < known; ++i) {
    struct background_thread* const thread = &threads[i];
    const int is_earlier = !first || thread->due_ns < first->due_ns;
    if (is_earlier || (thread->due_ns == first->due_ns && thread->met < first->met)) first = thread;
  }
  return first;
}

/* Wakes a thread. It releases the lock meanwhile: a thread on its way to sleep on a condition holds the condition's
 * mutex until it sleeps. */
static void wake(struct background_thread* thread) {
  pthread_cond_t* const condition = thread->condition;
  pthread_mutex_t* const mutex = thread->mutex;
  thread->by_clock = 1;
  thread->due_ns = never_due;
  __atomic_store_n(&thread->asleep, 0, __ATOMIC_RELEASE);
  if (!condition) {
    futex_wake_all(&thread->asleep, 0);
    return;
  }
  release();
  pthread_mutex_lock(mutex);
  clock_host.broadcast(condition);
  pthread_mutex_unlock(mutex);
  acquire();
}

void recorded_clock_advance(uint64_t ns) {
  if (recorded_clock_ns() >= ns) return;
  acquire();
  while (advancing && now_ns < ns) await_change();
  if (now_ns < ns) {
    advancing = 1;
    for (;;) {
      while (await_sleep()) await_new_threads();
      struct background_thread* const thread = first_due();
      if (!thread || thread->due_ns > ns) break;
      set_clock(thread->due_ns);
      wake(thread);
    }
    set_clock(ns);
    advancing = 0;
    if (known) announce_change();
  }
  release();
}

void recorded_clock_settle(void) {
  acquire();
  do {
    await_new_threads();
  } while (await_sleep());
  release();
}

int recorded_clock_knows(int thread) {
  int knows = 0;
  acquire();
  for (uint32_t i = 0; i < known; ++i) knows |= threads[i].number == thread;
  release();
  return knows;
}

/* Returns NULL if every entry is that of a live thread. */
static struct background_thread* new_entry(void) {
  for (uint32_t i = 0; i < known; ++i) {
    if (threads[i].number == 0) return &threads[i];
  }
  if (known < background_threads_max) return &threads[known++];
  for (uint32_t i = 0; i < known; ++i) {
    if (has_ended(threads[i].number)) return &threads[i];
  }
  return NULL;
}

int recorded_clock_meet(void) {
  if (self && !__atomic_load_n(&self->asleep, __ATOMIC_ACQUIRE)) return 1;
  acquire();
  if (self) {
    if (!self->is_busy) __atomic_store_n(&self->asleep, 0, __ATOMIC_RELEASE); /* it was given up */
  } else if ((self = new_entry())) {
    *self = (struct background_thread){.number = (int)syscall(SYS_gettid), .met = ++met, .due_ns = never_due};
  }
  release();
  return self != NULL;
}

static void fall_asleep(uint64_t due_ns, pthread_cond_t* condition, pthread_mutex_t* mutex) {
  assert(self); /* the thread was met */
  acquire();
  self->due_ns = due_ns;
  self->condition = condition;
  self->mutex = mutex;
  self->by_clock = 0;
  self->is_busy = 0;
  __atomic_store_n(&self->asleep, 1, __ATOMIC_RELEASE);
  announce_change();
  release();
}

/* Returns whether the thread's time has come. */
static int wake_up(void) {
  acquire();
  const int by_clock = self->by_clock != 0;
  self->due_ns = never_due;
  self->condition = NULL;
  __atomic_store_n(&self->asleep, 0, __ATOMIC_RELEASE);
  release();
  return by_clock;
}

void recorded_clock_sleep(uint64_t due_ns) {
  if (recorded_clock_ns() >= due_ns) return;
  fall_asleep(due_ns, NULL, NULL);
  while (__atomic_load_n(&self->asleep, __ATOMIC_ACQUIRE)) futex_wait(&self->asleep, 1, sleep_ns_max, 0);
  wake_up();
}

int recorded_clock_wait(pthread_cond_t* condition, pthread_mutex_t* mutex, uint64_t due_ns) {
  if (recorded_clock_ns() >= due_ns) return ETIMEDOUT;
  fall_asleep(due_ns, condition, mutex);
  clock_host.wait(condition, mutex);
  return wake_up() ? ETIMEDOUT : 0;
}

int recorded_clock_signal(pthread_cond_t* condition, int all) {
  int holds = 0;
  acquire();
  for (uint32_t i = 0; i < known; ++i) {
    if (!threads[i].asleep || threads[i].condition != condition) continue;
    __atomic_store_n(&threads[i].asleep, 0, __ATOMIC_RELEASE);
    holds = 1;
  }
  release();
  return all || holds ? clock_host.broadcast(condition) : clock_host.signal(condition);
}
