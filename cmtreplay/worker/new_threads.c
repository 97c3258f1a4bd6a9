/* Lists the threads of the process, to find those that the recorded clock has not met. */
#define _GNU_SOURCE
#include "cmtreplay/worker/new_threads.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cmtreplay/worker/clock/recorded_clock.h"

enum {
  look_ns = 50 * 1000,
  patience_ns = 100 * 1000 * 1000, /* after this a thread that was not met, and sleeps, is left alone */
  patience_busy_s = 5,             /* after this, too, one that runs or waits for a processor */
  left_alone_max = 64
};

/* An entry of getdents64(2). */
struct folder_entry {
  uint64_t inode, next;
  uint16_t bytes;
  uint8_t type;
  char name[];
};

static const struct replay* watched;
static int left_alone[left_alone_max];
static uint32_t left_alone_count;

static int is_of_lane(int thread) {
  for (uint32_t i = 0; i < watched->control->lane_count; ++i) {
    if (__atomic_load_n(&watched->lanes[i].thread.number, __ATOMIC_RELAXED) == (uint32_t)thread) return 1;
  }
  return 0;
}

static int is_left_alone(int thread) {
  const uint32_t count = __atomic_load_n(&left_alone_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; ++i) {
    if (left_alone[i] == thread) return 1;
  }
  return 0;
}

/* Returns a thread that was not met, or 0. */
static int new_thread(void) {
  char entries[2048] __attribute__((aligned(8)));
  int found = 0;
  const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return 0;
  for (long bytes; !found && (bytes = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < bytes && !found;) {
      const struct folder_entry* const entry = (const struct folder_entry*)(const void*)(entries + at);
      const int thread = atoi(entry->name);
      const int is_new = thread != 0 && thread != getpid() && !is_of_lane(thread) && !is_left_alone(thread);
      if (is_new && !recorded_clock_knows(thread)) found = thread;
      at += entry->bytes;
    }
  }
  close(folder);
  return found;
}

static void leave_alone(int thread) {
  const uint32_t index = __atomic_load_n(&left_alone_count, __ATOMIC_RELAXED);
  if (index == left_alone_max) return;
  left_alone[index] = thread;
  __atomic_store_n(&left_alone_count, index + 1, __ATOMIC_RELEASE);
}

/* Several lanes may be here at once. Each then leaves the same thread alone, which is in the list twice. */
static void await_new_threads(void) {
  const uint64_t begin = monotonic_ns();
  for (int thread; (thread = new_thread()) != 0;) {
    const uint64_t waited_ns = monotonic_ns() - begin;
    const int is_busy = recorded_clock_kernel_state(thread) == 'R';
    if (waited_ns > (is_busy ? patience_busy_s * (uint64_t)1000000000 : patience_ns)) {
      leave_alone(thread);
      return;
    }
    const struct timespec look = {.tv_nsec = look_ns};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &look, NULL);
  }
}

void await_new_threads_of(const struct replay* replay) {
  watched = replay;
  clock_host.await_new_threads = await_new_threads;
}
