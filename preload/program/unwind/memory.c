// Finds the ends of the process's first stack and of those that libc made, and asks the kernel about all others.
#include "preload/program/unwind/memory.h"

#include <sys/auxv.h>
#include <sys/resource.h>

#include "preload/program/kernel.h"

enum {
  page_bytes = 4096,
  pages_of_walk_max = 2048,
  thread_bytes_searched = 2304,
  musl_thread_bytes = 200,
  above_thread_max = 1 << 20
};
static const uintptr_t first_stack_bytes_min = (uintptr_t)128 << 20, first_stack_bytes_max = (uintptr_t)15 << 30;
static const uintptr_t block_bytes_max = (uintptr_t)15 << 30;

static struct {
  uintptr_t first_begin, first_end;  // the process's first stack
  bool can_ask;
} memory;

// rt_sigprocmask copies the new set from the program before it looks at `how`, which is wrong here: EFAULT or EINVAL.
// Nothing changes, no page is taken, and nearly every sandbox allows the call.
static long ask_kernel(uintptr_t address) { return sys(SYS_rt_sigprocmask, -1, address & ~(uintptr_t)7, 0, 8); }

bool memory_is_readable(uintptr_t address) {
  return memory.can_ask && !sandbox_entered && ask_kernel(address) == -EINVAL;
}

// The kernel puts 16 random bytes on the first stack, outside of all frames. It keeps other mappings out of the range
// below, to which that stack may grow: at least 128 MiB.
void memory_begin(void) {
  struct rlimit limit = {0, 0};
  const uintptr_t outside = getauxval(AT_RANDOM) & ~(uintptr_t)7;
  sys(SYS_prlimit64, 0, RLIMIT_STACK, 0, &limit);
  uintptr_t bytes = limit.rlim_cur;
  if (bytes < first_stack_bytes_min) bytes = first_stack_bytes_min;
  if (bytes > first_stack_bytes_max) bytes = first_stack_bytes_max;
  if (memory.first_end == 0) {  // the range was chosen when the program began; the limit may have been changed since
    memory.first_end = outside;
    memory.first_begin = outside > bytes ? outside - bytes : 0;
  }
  const uintptr_t never_readable = (uintptr_t)0xffff << 48;
  memory.can_ask =
      !sandbox_entered && ask_kernel(never_readable) == -EFAULT && ask_kernel((uintptr_t)&limit) == -EINVAL;
}

// libc keeps the address and size of the stack that it has made in the thread's control block, which is at the end of
// that stack. The place in the control block differs between versions. pthread_getattr_np would return both, but
// allocates.
static void find_block(struct UnwindThread* self) {
  const uintptr_t thread = (uintptr_t)__builtin_thread_pointer();
  const uintptr_t* word = (const uintptr_t*)thread;
  const int words = (int)((libc_is_musl() ? musl_thread_bytes : thread_bytes_searched) / sizeof *word);
  self->has_block = true;
  for (int i = 0; i + 1 < words; i++) {
    const uintptr_t begin = word[i], bytes = word[i + 1];
    if (begin == 0 || begin % 16 || begin >= thread || bytes > block_bytes_max) continue;
    if (begin + bytes <= thread || begin + bytes - thread > above_thread_max) continue;
    self->block_begin = begin;
    self->block_end = thread;
    return;
  }
}

void memory_enter_slowly(struct UnwindThread* self, uintptr_t place, struct StackPart* part) {
  if (!self->has_block) find_block(self);
  const bool is_of_block = place >= self->block_begin && place < self->block_end;
  if (is_of_block || (place >= memory.first_begin && place < memory.first_end)) {
    self->own_begin = is_of_block ? self->block_begin : memory.first_begin;
    self->own_end = is_of_block ? self->block_end : memory.first_end;
    *part = (struct StackPart){place, self->own_end, true, false};
    return;
  }
  *part = (struct StackPart){place, (place | (page_bytes - 1)) + 1, false, false};
}

bool memory_extend(struct StackPart* part, uintptr_t place) {
  if (part->is_own || part->is_asked_for || place - part->begin > (uintptr_t)pages_of_walk_max * page_bytes)
    return false;
  while (place >= part->end) {
    if (!memory_is_readable(part->end)) {
      part->is_asked_for = true;
      return false;
    }
    part->end += page_bytes;
  }
  return true;
}
