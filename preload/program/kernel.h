/// All that the tracer asks of the kernel: system calls, clocks, waiting, and its line on standard error.
///
/// System calls are made without libc's wrappers. So they leave errno alone and are no cancellation points. Functions
/// that the program or the tracer has put before those of libc do not see them.
///
/// A program may forbid system calls to itself (seccomp(2)), and the kernel may end it at the next one. From then on,
/// `sandbox_entered`, the tracer makes none in it. Futexes neither wake nor wait; the collector looks at the rings a
/// thousand times a second instead. Threads are not distinguished by the kernel's ids. Events of forked children are
/// counted as lost. interpose/process.c notices the moment.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "preload/processor.h"
#include "preload/program/machine/machine.h"
#include "preload/protocol.h"

/// For variables: our code reaches them without the global offset table, with one instruction less for each use.
#define HIDDEN __attribute__((visibility("hidden")))

/// For zeroed variables of 1 KiB and more. The linker sorts variables by alignment (preload/CMakeLists.txt). So these
/// come first, and the small ones are beside each other in few pages.
#define LARGE_VARIABLE __attribute__((aligned(64)))

/// An assertion for code in the traced program, where the C library's would allocate, write and call abort(), which is
/// interposed: this one stops at an illegal instruction. On where NDEBUG is not defined. Use it for statements that are
/// true in every program, in signal handlers and forked children too. Do not use it for the behaviour of the program or
/// the kernel.
#ifdef NDEBUG
#define must(condition) ((void)sizeof((condition) ? 1 : 0))
#else
#define must(condition) ((condition) ? (void)0 : __builtin_trap())
#endif

/// Returns the kernel's result: -errno on failure. Takes up to six arguments of any scalar type.
#define sys(...) sys_padded(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define sys_padded(number, a, b, c, d, e, f, ...) \
  sys6(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/// Calls that arm64 has only with a folder.
#ifdef SYS_open
#define sys_open(path, ...) sys(SYS_open, path, __VA_ARGS__)
#define sys_access(path, how) sys(SYS_access, path, how)
#define sys_stat(path, status) sys(SYS_stat, path, status)
#define sys_lstat(path, status) sys(SYS_lstat, path, status)
#define sys_unlink(path) sys(SYS_unlink, path)
#define sys_mknod(path, mode) sys(SYS_mknod, path, mode, 0)
#else
#define sys_open(path, ...) sys(SYS_openat, AT_FDCWD, path, __VA_ARGS__)
#define sys_access(path, how) sys(SYS_faccessat, AT_FDCWD, path, how)
#define sys_stat(path, status) sys(SYS_newfstatat, AT_FDCWD, path, status, 0)
#define sys_lstat(path, status) sys(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW)
#define sys_unlink(path) sys(SYS_unlinkat, AT_FDCWD, path, 0)
#define sys_mknod(path, mode) sys(SYS_mknodat, AT_FDCWD, path, mode, 0)
#endif

/// New zeroed memory outside of all heaps, or NULL.
static inline void* sys_map(size_t bytes) {
  long address = sys6(SYS_mmap, 0, (long)bytes, 3 /* read, write */, 0x22 /* private, anonymous */, -1, 0);
  return address < 0 && address > -4096 ? NULL : (void*)address;
}

/// The same, in pages of 4 KiB, and left out of core dumps. NULL in a sandbox.
void* sys_map_quietly(size_t bytes);

/// Blocks all signals: a handler then runs before or after the code in between, never within it.
static inline void block_signals(uint64_t* before) {
  static const uint64_t all = ~(uint64_t)0;
  sys(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, before, 8);
}
static inline void restore_signals(const uint64_t* before) {
  sys(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, before, 0, 8);
}

/// Whether the kernel gives orphans to this process: a child subreaper (PR_SET_CHILD_SUBREAPER), or the first process
/// of a container. Asked each time: a program that executes another one stays a subreaper, and a forked child is none.
/// False in a sandbox.
bool inherits_orphans(void);

/// How many filters of system calls the process had when this was called first (seccomp(2)); -1: some, or /proc does
/// not say so. The first call takes 30 us.
int system_call_filters(void);

extern bool sandbox_entered HIDDEN;
/// Before the program enters its sandbox at stamp `now`: from here on the collector's stamps are the slow clock.
void sandbox_begin(struct Control* control, uint64_t now);
/// The program was refused it.
void sandbox_cancel(void);

uint64_t clock_ns(clockid_t clock);
/// Whether the processor's clock runs at the same rate on all processors, and always.
bool clock_is_steady(void);
/// Stamps are nanoseconds / 16, or the collector's in a sandbox, because the processor's clock cannot be used.
extern bool clock_is_slow HIDDEN;
uint64_t clock_slow_stamp(void);

/// The stamp of now. The clock may be read before the instructions in front of it are done, by up to a cache miss; not
/// if `fenced`.
static inline uint64_t clock_stamp(bool fenced) {
  if (__builtin_expect(clock_is_slow, 0)) return clock_slow_stamp();
  return processor_stamp(fenced);
}

/// How long it takes to read the clock for a stamp.
double clock_cost_ns(void);

/// Waits 1 to 10 tenths of a second at most for `*word` to differ from `seen`. Whether the time was up.
bool wait_timed_out(const uint32_t* word, uint32_t seen, int tenths);

const char* gnu_get_libc_version(void) __attribute__((weak));
/// Whether the C library is musl, or another one that is not glibc.
static inline bool libc_is_musl(void) { return !gnu_get_libc_version; }

/// Writes as writev(2) does, but a failure is no SIGPIPE and no SIGXFSZ to the program. Where a pipe is full, nobody
/// waits for its reader: -EAGAIN.
long write_unnoticed(long file, const struct iovec* pieces, int count);

/// Remembers which file standard error is, or that it is closed.
void remember_standard_error(void);
/// From here on messages go to `message`, which has room for `bytes`, and none to standard error. The first one stays.
void keep_messages(char* message, size_t bytes);
/// Writes one line to standard error, if that is still the same file: the program may use its number for another one
/// now. `detail`: what goes on, "; the program …", or a file. `error`: an errno, or 0.
void write_message(const char* what, const char* detail, long error);
