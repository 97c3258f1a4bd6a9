/* The parts of the protocol that both sides need: it is compiled into the worker and into its parent. */
#define _GNU_SOURCE
#include "cmtreplay/protocol.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

const char* const call_names[call_count] = {"malloc",        "free",           "calloc",   "realloc", "reallocarray",
                                            "aligned_alloc", "posix_memalign", "memalign", "valloc",  "pvalloc"};

const char* const mallctl_names[mallctl_count] = {"arena.#.purge",
                                                  "arena.#.decay",
                                                  "arena.#.dirty_decay_ms",
                                                  "arena.#.muzzy_decay_ms",
                                                  "arenas.dirty_decay_ms",
                                                  "arenas.muzzy_decay_ms",
                                                  "background_thread",
                                                  "max_background_threads",
                                                  "thread.tcache.flush",
                                                  "thread.tcache.enabled",
                                                  "thread.idle"};

uint64_t clock_nanoseconds(clockid_t clock) {
  struct timespec now;
  syscall(SYS_clock_gettime, clock,
          &now); /* clock_gettime is the allocator's in the worker (worker/clock/clock_calls.h) */
  return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void futex_wait(const uint32_t* word, uint32_t seen, uint64_t ns, int shared) {
  const struct timespec longest = {.tv_sec = (time_t)(ns / 1000000000U), .tv_nsec = (long)(ns % 1000000000U)};
  syscall(SYS_futex, word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, seen, &longest, NULL, 0);
}

void futex_wake_all(const uint32_t* word, int shared) {
  syscall(SYS_futex, word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
