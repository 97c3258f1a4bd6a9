// A library that captures the call stack at each allocation of a program, with the unwinder of preload/program.
// bench/stack_cost preloads it. It writes its result to the file STACK_SHIM_OUT when the program ends. STACK_SHIM is
// one of:
//
//   off      counts allocations
//   capture  captures
//   check    captures, and compares with a walk by rules alone, in the same call
//   agree    captures, and compares each hundredth with libunwind's
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/programs/stack_agree.h"
#include "preload/program/unwind/unwind.h"

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void __libc_free(void* block);

static enum { not_begun, off, capturing, checking, agreeing } mode;
static struct StackShare* share;
static uint64_t uncounted, differences;
static struct StackAgreement agreement;

struct PerThread {
  struct UnwindThread unwinder;
  struct PerThread* next;
  uint64_t allocations, compared, frames, fresh, cut;
  uint32_t known[unwind_frames_max];  // what a reader of the records knows
};
static __thread struct PerThread* mine __attribute__((tls_model("initial-exec")));
static struct PerThread* all;

static void* map(size_t bytes) {
  return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static __attribute__((noinline)) void begin_thread(void) {
  mine = map(sizeof *mine);
  mine->next = __atomic_load_n(&all, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&all, &mine->next, mine, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) continue;
}

static __attribute__((noinline)) void compare(const struct UnwindStack* stack, const void* frame) {
  struct UnwindStack apart;
  for (int i = stack->kept; i < stack->frames; i++) mine->known[i] = unwind_frame(&mine->unwinder, stack, i);
  unwind_capture_apart(&mine->unwinder, frame, &apart);
  const int most = apart.frames < stack->frames ? apart.frames : stack->frames;
  bool same = apart.frames == stack->frames || apart.frames == unwind_apart_frames_max || stack->is_cut;
  for (int i = 1; same && i <= most; i++)
    same = mine->known[stack->frames - i] == unwind_frame(&mine->unwinder, &apart, apart.frames - i);
  mine->compared++;
  __atomic_add_fetch(&differences, !same, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void agree(const struct UnwindStack* stack) {
  static __thread uint64_t addresses[unwind_frames_max] __attribute__((tls_model("initial-exec")));
  for (int i = stack->kept; i < stack->frames; i++) mine->known[i] = unwind_frame(&mine->unwinder, stack, i);
  if (mine->allocations % 100 != 0) return;
  for (int i = 0; i < stack->frames; i++)
    addresses[i] = share->table.rule[mine->known[stack->frames - 1 - i]].key & ~UNWIND_EXACT;
  stack_agree(addresses, stack->frames, &agreement);
}

static inline void note(const void* frame) {
  struct UnwindStack stack;
  if (__builtin_expect(mode <= off, 0)) {
    uncounted += mode == off;
    return;
  }
  if (__builtin_expect(!mine, 0)) begin_thread();
  unwind_capture(&mine->unwinder, frame, &stack);
  mine->allocations++;
  mine->frames += (uint64_t)stack.frames;
  mine->fresh += (uint64_t)(stack.frames - stack.kept);
  mine->cut += stack.is_cut;
  if (mode == checking && !stack.is_apart) compare(&stack, frame);
  if (mode == agreeing && !stack.is_apart) agree(&stack);
  unwind_release(&mine->unwinder, frame);
}

__attribute__((visibility("default"))) void* malloc(size_t size) {
  void* block = __libc_malloc(size);
  note(__builtin_frame_address(0));
  return block;
}
__attribute__((visibility("default"))) void* calloc(size_t count, size_t size) {
  void* block = __libc_calloc(count, size);
  note(__builtin_frame_address(0));
  return block;
}
__attribute__((visibility("default"))) void* realloc(void* old, size_t size) {
  void* block = __libc_realloc(old, size);
  note(__builtin_frame_address(0));
  return block;
}
__attribute__((visibility("default"))) void free(void* block) {
  unwind_before_free(block, __builtin_return_address(0));
  __libc_free(block);
}

__attribute__((constructor)) static void begin(void) {
  const char* wanted = getenv("STACK_SHIM");
  if (!wanted) return;
  share = map(sizeof *share);
  const char* fault = unwind_begin_process(share, 0);
  if (strcmp(wanted, "agree") == 0 && !stack_agree_begin()) fault = "libunwind is not installed";
  if (fault)
    fprintf(stderr, "stack_shim: %s\n", fault);
  else
    mode = strcmp(wanted, "off") == 0     ? off
           : strcmp(wanted, "check") == 0 ? checking
           : strcmp(wanted, "agree") == 0 ? agreeing
                                          : capturing;
}

__attribute__((destructor)) static void end(void) {
  const char* path = getenv("STACK_SHIM_OUT");
  if (!path || mode == not_begun) return;
  const bool was_agreeing = mode == agreeing;
  mode = not_begun;
  uint64_t allocations = uncounted, frames = 0, fresh = 0, cut = 0, compared = 0, stepped = 0;
  for (const struct PerThread* each = __atomic_load_n(&all, __ATOMIC_ACQUIRE); each; each = each->next) {
    allocations += each->allocations;
    frames += each->frames;
    fresh += each->fresh;
    cut += each->cut;
    compared += each->compared;
    stepped += each->unwinder.stepped;
  }
  if (allocations < 1000) return;  // a shell around the program
  char line[256];
  int length = snprintf(line, sizeof line, "%lu %lu %lu %lu %lu %lu %lu %lu\n", allocations, frames, fresh, cut,
                        differences, stepped, (uint64_t)share->table.used, compared);
  if (was_agreeing)
    length = snprintf(line, sizeof line, "%lu %lu %lu %lu %lu %lu %lu\n", agreement.sampled, agreement.same,
                      agreement.ours_longer, agreement.ours_shorter, agreement.libgcc_has_ours,
                      agreement.libgcc_has_theirs, agreement.libgcc_has_neither);
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0 || write(file, line, (size_t)length) != length)
    fprintf(stderr, "stack_shim: %s: %s\n", path, strerror(errno));
}
