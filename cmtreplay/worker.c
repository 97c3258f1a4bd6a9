/* The worker: a process that carries out prepared operations with the allocator that was preloaded into it.
 *
 *     cmtreplay-worker CONTROL_FD     replays
 *     cmtreplay-worker --probe        says where malloc and the other calls come from, and which objects are loaded
 *
 * It measures itself, so it has to be nothing: plain C without stdio or libstdc++ (whose start alone would ask for
 * 72,704 bytes), no allocation of its own, everything mapped and faulted in before the start. What changes in its
 * anonymous memory between the start and the end is the allocator's.
 *
 * A block is touched as a program would at least: one write into every page of it, the first and the last byte among
 * them. Blocks of calloc are read instead. Without touching, resident memory would mean nothing. The null allocator's
 * blocks are not touched: nothing is there.
 *
 * The loop costs 2 to 5 ns an operation (bench/replay_overhead). `position` is stored for every operation, some 0.3 ns,
 * so that the parent can name the event at which an allocator crashed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "protocol.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

enum { page_bytes = 4096, stack_bytes = 64 * 1024 };

struct replay {
  struct control* control;
  const uint64_t* operations;
  void** slots;
  void** pointers; /* the next place for a returned pointer; unused where they are not kept */
};

static struct calls calls;

/* Touching. */

static inline char* next_page(char* at) { return (char*)(((uintptr_t)at | (page_bytes - 1)) + 1); }

static inline void write_pages(char* block, size_t from, size_t size) {
  if (!block || from >= size) return;
  volatile char* const last = block + size - 1;
  block[from] = 1;
  for (char* page = next_page(block + from); page < last; page = next_page(page)) *(volatile char*)page = 1;
  *last = 1;
}

static inline void read_pages(char* block, size_t size) {
  if (!block || !size) return;
  volatile char* const last = block + size - 1;
  (void)*(volatile char*)block;
  for (char* page = next_page(block); page < last; page = next_page(page)) (void)*(volatile char*)page;
  (void)*last;
}

/* The loop. The four calls that make up nearly all of any trace stand in it, the others apart, so that the compiler
 * keeps what it needs in registers. `touches` and `keeps` are constants where it is called: three loops come out. */

/* What an operation came to. */
struct answer {
  void* block;
  uint64_t from, size; /* the bytes of the block that are to be touched */
  const uint64_t* next;
};

static inline uint64_t total(uint64_t count, uint64_t size) {
  uint64_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? 0 : bytes;
}

__attribute__((noinline)) static struct answer call_rarely(enum operation kind, void* old, uint64_t size,
                                                           const uint64_t* at) {
  struct answer answer = {.size = size};
  switch (kind) {
    case operation_realloc_from:
      answer.from = *at++;
      answer.block = calls.realloc(old, size);
      break;
    case operation_realloc_new:
      answer.block = calls.realloc(NULL, size);
      break;
    case operation_reallocarray:
      answer.size = total(at[0], size);
      answer.from = at[1];
      answer.block = calls.reallocarray(old, at[0], size);
      at += 2;
      break;
    case operation_aligned_alloc:
      answer.block = calls.aligned_alloc(*at++, size);
      break;
    case operation_posix_memalign:
      if (calls.posix_memalign(&answer.block, *at++, size) != 0) answer.block = NULL;
      break;
    case operation_memalign:
      answer.block = calls.memalign(*at++, size);
      break;
    case operation_valloc:
      answer.block = calls.valloc(size);
      break;
    case operation_pvalloc:
      answer.block = calls.pvalloc(size);
      break;
    default:
      break;
  }
  answer.next = at;
  return answer;
}

/* A refused realloc leaves the old block where it is. */
static inline int keeps_old(enum operation kind) {
  return kind == operation_realloc || kind == operation_realloc_from || kind == operation_reallocarray;
}

__attribute__((always_inline)) static inline void replay_words(struct replay* replay, uint64_t begin, uint64_t end,
                                                               int touches, int keeps) {
  struct control* const control = replay->control;
  const uint64_t* const operations = replay->operations;
  const uint64_t* at = operations + begin;
  const uint64_t* const stop = operations + end;
  void** const slots = replay->slots;
  while (at < stop) {
    control->position = (uint64_t)(at - operations);
    const uint64_t word = *at++;
    const enum operation kind = (enum operation)(word & 15);
    void** const slot = &slots[(uint32_t)word >> 4];
    if (kind == operation_free) {
      calls.free(*slot);
      continue;
    }
    uint64_t size = word >> 32;
    uint64_t from = 0;
    void* block;
    if (size == SIZE_IN_NEXT_WORD) size = *at++;
    if (kind == operation_malloc) {
      block = calls.malloc(size);
    } else if (kind == operation_calloc) {
      block = calls.calloc(*at, size);
      size = total(*at++, size);
    } else if (kind == operation_realloc) {
      block = calls.realloc(*slot, size);
    } else {
      const struct answer answer = call_rarely(kind, *slot, size, at);
      block = answer.block;
      from = answer.from;
      size = answer.size;
      at = answer.next;
    }
    if (keeps) *replay->pointers++ = block;
    if (!block && size) {
      ++control->refused;
      if (keeps_old(kind)) continue;
    }
    *slot = block;
    if (touches) kind == operation_calloc ? read_pages(block, size) : write_pages(block, from, size);
  }
}

__attribute__((noinline)) static void replay_touching(struct replay* replay, uint64_t begin, uint64_t end) {
  replay_words(replay, begin, end, 1, 0);
}

__attribute__((noinline)) static void replay_untouched(struct replay* replay, uint64_t begin, uint64_t end) {
  replay_words(replay, begin, end, 0, 0);
}

__attribute__((noinline)) static void replay_keeping(struct replay* replay, uint64_t begin, uint64_t end) {
  replay_words(replay, begin, end, replay->control->target != target_null, 1);
}

typedef void replay_function(struct replay*, uint64_t, uint64_t);

static replay_function* loop_for(const struct control* control) {
  if (control->pointers_fd >= 0) return replay_keeping;
  return control->target == target_null ? replay_untouched : replay_touching;
}

/* Stopping and measuring. */

static void stop(const struct control* control) {
  char byte = 'r';
  while (write(control->talk_fd, &byte, 1) < 0 && errno == EINTR) continue;
  ssize_t got;
  while ((got = read(control->talk_fd, &byte, 1)) < 0 && errno == EINTR) continue;
  if (got != 1) _exit(1);
}

static uint64_t nanoseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static void measure(struct replay* replay) {
  struct control* const control = replay->control;
  replay_function* const loop = loop_for(control);
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  const uint64_t cpu_begin = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  const uint64_t wall_begin = nanoseconds(CLOCK_MONOTONIC);
  uint64_t begin = 0;
  for (uint32_t mark = 0; mark < control->mark_count; ++mark) {
    loop(replay, begin, control->marks[mark]);
    begin = control->marks[mark];
    if (mark + 1 < control->mark_count) stop(control);
  }
  control->wall_ns = nanoseconds(CLOCK_MONOTONIC) - wall_begin;
  control->cpu_ns = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
  getrusage(RUSAGE_SELF, &after);
  control->minor_faults = (uint64_t)(after.ru_minflt - before.ru_minflt);
  control->major_faults = (uint64_t)(after.ru_majflt - before.ru_majflt);
}

/* Setting up. */

static void* map_fd(int fd, uint64_t bytes, int protection) {
  if (bytes == 0) return NULL;
  return mmap(NULL, bytes, protection, MAP_SHARED | MAP_POPULATE, fd, 0);
}

/* Code and constants of every object, so that neither their faults nor their pages fall into the measurement. */
static int populate_object(struct dl_phdr_info* object, size_t info_bytes, void* unused) {
  (void)info_bytes;
  (void)unused;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const segment = &object->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || segment->p_flags & PF_W) continue;
    const uintptr_t begin = (object->dlpi_addr + segment->p_vaddr) & ~(uintptr_t)(page_bytes - 1);
    const uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_filesz;
    madvise((void*)begin, end - begin, MADV_POPULATE_READ);
  }
  return 0;
}

static void populate_stack(void) {
  volatile char bytes[stack_bytes];
  for (size_t i = 0; i < sizeof bytes; i += page_bytes) bytes[i] = 0;
}

static struct replay set_up(struct control* control) {
  struct replay replay = {.control = control};
  const int read_write = PROT_READ | PROT_WRITE;
  replay.operations = map_fd(control->operations_fd, control->operation_words * sizeof(uint64_t), PROT_READ);
  replay.slots = map_fd(control->slots_fd, control->slot_count * sizeof(void*), read_write);
  if (control->pointers_fd >= 0)
    replay.pointers = map_fd(control->pointers_fd, control->pointer_count * sizeof(void*), read_write);
  if (replay.operations == MAP_FAILED || replay.slots == MAP_FAILED || replay.pointers == MAP_FAILED)
    control->setup_errno = errno;
  else if (control->target == target_null)
    control->setup_errno = reserve_null_range();
  calls = control->target == target_null ? null_calls() : completed_calls(control->replaced);
  dl_iterate_phdr(populate_object, NULL);
  populate_stack();
  return replay;
}

static int run(int control_fd) {
  struct control* const control = map_fd(control_fd, sizeof *control, PROT_READ | PROT_WRITE);
  if (control == MAP_FAILED) return 1;
  struct replay replay = set_up(control);
  stop(control);
  measure(&replay);
  stop(control);
  return 0;
}

/* Probing: a line a call and a line an object, on standard output. */

static void say(const char* word, const char* path) {
  char line[8192];
  size_t length = 0;
  for (const char* part = word; *part; ++part) line[length++] = *part;
  line[length++] = ' ';
  for (const char* part = path; *part && length < sizeof line - 1; ++part) line[length++] = *part;
  line[length++] = '\n';
  for (size_t put = 0; put < length;) {
    const ssize_t now = write(STDOUT_FILENO, line + put, length - put);
    if (now < 0 && errno != EINTR) _exit(1);
    if (now > 0) put += (size_t)now;
  }
}

static int say_object(struct dl_phdr_info* object, size_t info_bytes, void* unused) {
  (void)info_bytes;
  (void)unused;
  say("object", object->dlpi_name);
  return 0;
}

static int probe(void) {
  const struct calls found = process_calls();
  const void* addresses[call_count];
  call_addresses(&found, addresses);
  for (int i = 0; i < call_count; ++i) {
    Dl_info info;
    say(call_names[i], dladdr(addresses[i], &info) ? info.dli_fname : "");
  }
  dl_iterate_phdr(say_object, NULL);
  return 0;
}

int main(int count, char** arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (count != 2) return 2;
  const int status = strcmp(arguments[1], "--probe") == 0 ? probe() : run(atoi(arguments[1]));
  _exit(status);
}
