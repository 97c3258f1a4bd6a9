/// System calls without libc's wrappers: they leave errno alone, are no cancellation points, and go past whatever the
/// program or we have put before the names of libc.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static inline long sys6(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

/// Returns what the kernel returns: -errno on failure. Takes up to six arguments of any scalar type.
#define sys(...) sys_padded(__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define sys_padded(number, a, b, c, d, e, f, ...) \
  sys6(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/// Fresh zeroed memory that is in no heap, or NULL.
static inline void* sys_map(size_t bytes) {
  long address = sys6(SYS_mmap, 0, (long)bytes, 3 /* read, write */, 0x22 /* private, anonymous */, -1, 0);
  return address < 0 && address > -4096 ? NULL : (void*)address;
}
static inline void sys_unmap(void* memory, size_t bytes) { sys6(SYS_munmap, (long)memory, (long)bytes, 0, 0, 0, 0); }

/// All signals, so that a handler finds what is at work done or not begun.
static inline void block_signals(uint64_t* before) {
  static const uint64_t all = ~(uint64_t)0;
  sys(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, before, 8);
}
static inline void restore_signals(const uint64_t* before) {
  sys(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, before, 0, 8);
}
