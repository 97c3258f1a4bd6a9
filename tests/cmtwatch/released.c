// A program that frees most of its memory and waits. Its malloc then has much to give back, but for malloc_trim(3).
//
//     released KIND MILLISECONDS
//
// It prints "ready", waits as KIND says, and prints "waited RESULT EARLY": the result of its system call, and 1 if the
// wait was shorter than asked for. Then it obeys its standard input: "figures" prints what its allocator says of
// itself, "purge" has the allocator give its unused memory back, anything else ends it.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

// The preloaded allocator has one of them, or none.
__attribute__((weak)) int mallctl(const char* name, void* old, size_t* old_bytes, void* fresh, size_t fresh_bytes);
__attribute__((weak)) int MallocExtension_GetNumericProperty(const char* property, size_t* value);
__attribute__((weak)) void MallocExtension_ReleaseFreeMemory(void);

enum { blocks = 16000, block_bytes = 1000 };

static long now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

// The last block stays, so that free() itself gives nothing back.
static void* release_most(void) {
  static void* all[blocks];
  for (int i = 0; i < blocks; i++) memset(all[i] = malloc(block_bytes), 1, block_bytes);
  for (int i = 0; i < blocks - 1; i++) free(all[i]);
  return all[blocks - 1];
}

static int result_of(long result) { return result == -1 ? -errno : (int)result; }

static int wait_as(const char* kind, int wait_ms) {
  const long begin = now_us();
  const struct timespec time = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000L};
  struct epoll_event event;
  if (strcmp(kind, "epoll") == 0) return result_of(epoll_wait(epoll_create1(0), &event, 1, wait_ms));
  if (strcmp(kind, "sleep") == 0) return result_of(nanosleep(&time, NULL));
  if (strcmp(kind, "poll") == 0) return result_of(poll(NULL, 0, wait_ms));
  if (strcmp(kind, "pselect") == 0) return result_of(pselect(0, NULL, NULL, NULL, &time, NULL));
  while (now_us() - begin < wait_ms * 1000L) sched_yield();  // "spin": it runs all the time
  return 0;
}

static void say_figures(void) {
  static const char* const names[] = {"stats.allocated", "stats.active", "stats.metadata",
                                      "stats.resident",  "stats.mapped", "stats.retained"};
  static const char* const properties[] = {"generic.current_allocated_bytes", "generic.heap_size",
                                           "tcmalloc.pageheap_free_bytes", "tcmalloc.central_cache_free_bytes",
                                           "tcmalloc.thread_cache_free_bytes"};
  size_t epoch = 1, figure = 0, bytes = sizeof figure, page = 0;
  if (mallctl) {
    mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      if (mallctl(names[i], &figure, &bytes, NULL, 0) == 0) dprintf(1, "%s %zu\n", names[i], figure);
    }
    mallctl("arenas.page", &page, &bytes, NULL, 0);
    mallctl("stats.arenas.4096.pdirty", &figure, &bytes, NULL, 0);
    dprintf(1, "stats.arenas.4096.pdirty %zu\n", figure * page);
  } else if (MallocExtension_GetNumericProperty) {
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
      if (MallocExtension_GetNumericProperty(properties[i], &figure)) dprintf(1, "%s %zu\n", properties[i], figure);
    }
  }
  dprintf(1, "end\n");
}

static void purge(void) {
  if (mallctl) mallctl("arena.4096.purge", NULL, NULL, NULL, 0);
  if (MallocExtension_ReleaseFreeMemory) MallocExtension_ReleaseFreeMemory();
  dprintf(1, "purged\n");
}

int main(int argc, char** argv) {
  const int wait_ms = argc == 3 ? atoi(argv[2]) : 0;
  void* volatile last = release_most();
  dprintf(1, "ready\n");
  const long begin = now_us();
  const int result = wait_as(argv[1], wait_ms);
  dprintf(1, "waited %d %d\n", result, now_us() - begin < wait_ms * 1000L);
  for (char line[16]; read(0, line, sizeof line) > 0;) {
    if (line[0] == 'f')
      say_figures();
    else if (line[0] == 'p')
      purge();
    else
      break;
  }
  return last == NULL;
}
