#include "preload/program/sandbox.h"

#include <linux/seccomp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/program/interpose.h"
#include "preload/program/real.h"
#include "preload/program/record.h"

enum { pauses_max = 1 << 21, name_bytes_max = 15 };

bool sandbox_entered;

static struct {
  struct Control* control;
  uint64_t began;
  bool clock_was_slow;
} state;

typedef long Syscall(long, long, long, long, long, long, long);
static int (*next_prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
__attribute__((used)) static Syscall* next_syscall;

static void find_next(void) {
  if (next_syscall) return;
  *(void**)&next_prctl = real_must("prctl");
  *(void**)&next_syscall = real_must("syscall");
}

__attribute__((constructor)) static void begin(void) { find_next(); }

void sandbox_begin(struct Control* control, uint64_t now) {
  state.control = control;
  state.began = now;
  __atomic_store_n(&control->sandboxed, 1, __ATOMIC_SEQ_CST);
}

uint64_t sandbox_clock(void) {
  uint64_t told = state.control ? __atomic_load_n(&state.control->clock_stamp, __ATOMIC_RELAXED) : 0;
  return told > state.began ? told : state.began;
}

bool sandbox_wait(const uint32_t* word, uint32_t seen) {
  for (int i = 0; i < pauses_max; i++) {
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != seen) return false;
    __builtin_ia32_pause();
  }
  return true;
}

// The last moment for what needs system calls.
static bool enter(bool has_clock) {
  state.clock_was_slow = record_clock_is_ns;
  if (sandbox_entered || !real_ready() || !record_may_enter_sandbox(has_clock)) return false;
  sandbox_entered = true;
  return true;
}

static void entered(bool first, long failed) {
  if (!first || !failed) return;
  sandbox_entered = false;
  record_clock_is_ns = state.clock_was_slow;
  if (state.control) state.control->sandboxed = 0;
}

static void name_thread(const char* given) {
  char name[name_bytes_max + 1] = {0};
  memcpy(name, given, strnlen(given, name_bytes_max));  // that is all the kernel reads
  if (real_ready()) record_own_name(name);
}

EXPORT int prctl(int option, ...) {
  va_list list;
  va_start(list, option);
  unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long), c = va_arg(list, unsigned long),
                d = va_arg(list, unsigned long);
  va_end(list);
  find_next();
  bool has_clock = !(option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT);
  bool enters = option == PR_SET_SECCOMP || (option == PR_SET_TSC && a == PR_TSC_SIGSEGV);
  bool first = enters && enter(has_clock && option != PR_SET_TSC);
  int failed = next_prctl(option, a, b, c, d);
  entered(first, failed);
  if (option == PR_SET_NAME && !failed) name_thread((const char*)a);
  return failed;
}

__attribute__((used)) static long watched_syscall(long number, long a, long b, long c, long d, long e, long f) {
  find_next();
  if (number == SYS_prctl) return prctl((int)a, b, c, d, e);
  bool enters = number == SYS_seccomp && (a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER);
  bool first = enters && enter(a != SECCOMP_SET_MODE_STRICT);
  long result = next_syscall(number, a, b, c, d, e, f);
  entered(first, result);
  return result;
}

_Static_assert(SYS_prctl == 157 && SYS_seccomp == 317, "named in syscall");

// All others go through without a frame of ours: a child may come back on another stack.
EXPORT __attribute__((naked)) long syscall(__attribute__((unused)) long number, ...) {
  __asm__(
      "cmp $157, %rdi\n\t"
      "je 1f\n\t"
      "cmp $317, %rdi\n\t"
      "je 1f\n\t"
      "mov next_syscall(%rip), %rax\n\t"
      "test %rax, %rax\n\t"
      "je 1f\n\t"
      "jmp *%rax\n"
      "1:\tjmp watched_syscall");
}
