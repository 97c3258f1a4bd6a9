// The parts of kernel.h that are more than one system call: stamps, bounded waits, the line on standard error.
#include "preload/program/kernel.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#if defined __x86_64__
#include <cpuid.h>
#endif

#include "preload/program/hooks/find.h"
#include "preload/text.h"

enum { pauses_max = 1 << 21 };  // of the processor: a tenth of a second

bool sandbox_entered, clock_is_slow;

static struct {
  struct Control* control;
  uint64_t began;
} sandbox;

void* sys_map_quietly(size_t bytes) {
  if (sandbox_entered) return NULL;
  void* begin = sys_map(bytes);
  if (!begin) return NULL;
  sys(SYS_madvise, begin, bytes, MADV_NOHUGEPAGE);
  sys(SYS_madvise, begin, bytes, MADV_DONTDUMP);
  return begin;
}

// The number after a key of /proc/self/status, or -1.
static int number_of(const char* text, const char* key) {
  const char* found = strstr(text, key);
  if (!found) return -1;
  int number = 0;
  for (found += strlen(key); *found >= '0' && *found <= '9' && number < 1000; found++)
    number = number * 10 + *found - '0';
  return number;
}

// Linux 5.9 is the first to count them.
static int count_filters(void) {
  char text[4096];
  const long file = sys_open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  const long length = file < 0 ? file : sys(SYS_read, file, text, sizeof text - 1);
  if (file >= 0) sys(SYS_close, file);
  if (length <= 0) return -1;
  text[length] = 0;
  return number_of(text, "\nSeccomp:\t") == 0 ? 0 : number_of(text, "\nSeccomp_filters:\t");
}

int system_call_filters(void) {
  enum { not_known = -2 };
  static int filters = not_known;
  if (filters == not_known) filters = count_filters();
  return filters;
}

void sandbox_begin(struct Control* control, uint64_t now) {
  sandbox.control = control;
  sandbox.began = now;
  __atomic_store_n(&control->sandboxed, 1, __ATOMIC_SEQ_CST);
}

void sandbox_cancel(void) {
  sandbox_entered = false;
  if (sandbox.control) sandbox.control->sandboxed = 0;
}

static uint64_t sandbox_stamp(void) {
  uint64_t coarse = sandbox.control ? __atomic_load_n(&sandbox.control->clock, __ATOMIC_RELAXED) : 0;
  return coarse > sandbox.began ? coarse : sandbox.began;
}

uint64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_slow_stamp(void) { return sandbox_entered ? sandbox_stamp() : clock_ns(CLOCK_MONOTONIC) >> stamp_shift; }

#if defined __x86_64__
// "Invariant TSC". AMD and Intel: leaf 0x80000007, EDX bit 8.
bool clock_is_steady(void) {
  uint32_t a, b, c, d;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d >> 8 & 1) != 0;
}
#else
bool clock_is_steady(void) { return true; }
#endif

// The least of a few tries, because each may be interrupted.
double clock_cost_ns(void) {
  enum { tries = 4, reads = 64 };
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < tries; i++) {
    const uint64_t before = clock_ns(CLOCK_MONOTONIC);
    for (int j = 0; j < reads; j++) __asm__ volatile("" : : "r"(clock_stamp(false)));
    const uint64_t took = clock_ns(CLOCK_MONOTONIC) - before;
    if (took < least) least = took;
  }
  return (double)least / reads;
}

bool inherits_orphans(void) {
  int is_subreaper = 0;
  if (sandbox_entered) return false;
  if (sys(SYS_prctl, PR_GET_CHILD_SUBREAPER, &is_subreaper) == 0 && is_subreaper) return true;
  return sys(SYS_getpid, 0) == 1;
}

static bool spin_timed_out(const uint32_t* word, uint32_t seen, int tenths) {
  for (int i = 0; i < tenths * pauses_max; i++) {
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != seen) return false;
    processor_pause();
  }
  return true;
}

bool wait_timed_out(const uint32_t* word, uint32_t seen, int tenths) {
  must(tenths > 0 && tenths <= 10);
  if (sandbox_entered) return spin_timed_out(word, seen, tenths);
  const struct timespec time = {.tv_sec = tenths / 10, .tv_nsec = tenths % 10 * 100000000L};
  return sys(SYS_futex, word, FUTEX_WAIT, seen, &time) == -ETIMEDOUT;
}

// Both signals are sent to the thread that writes. One that was pending before stays so.
long write_unnoticed(long file, const struct iovec* pieces, int count) {
  static const uint64_t failures = UINT64_C(1) << (SIGPIPE - 1) | UINT64_C(1) << (SIGXFSZ - 1);
  const struct timespec now = {0};
  struct pollfd room = {.fd = (int)file, .events = POLLOUT};
  const long ready = sys(SYS_ppoll, &room, 1, &now, 0, 8);
  if (ready == 0 || ready == -EINTR) return -EAGAIN;
  uint64_t before = 0, pending = 0;
  sys(SYS_rt_sigprocmask, SIG_BLOCK, &failures, &before, 8);
  sys(SYS_rt_sigpending, &pending, 8);
  const long written = sys(SYS_writev, file, pieces, count);
  const uint64_t raised = failures & ~pending;
  if (written == -EPIPE || written == -EFBIG || written > 0) sys(SYS_rt_sigtimedwait, &raised, 0, &now, 8);
  sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
  return written;
}

static struct stat standard_error;

static struct stat status_of_standard_error(void) {
  struct stat status = {0};  // remains so if it is closed
  sys(SYS_fstat, 2, &status);
  return status;
}

void remember_standard_error(void) { standard_error = status_of_standard_error(); }

static struct {
  char* message;
  size_t bytes;
} kept;

void keep_messages(char* message, size_t bytes) {
  kept.message = message;
  kept.bytes = bytes;
}

// strerror may allocate. Before glibc 2.32 there is nothing else.
static char* put_cause(char* out, long error) {
  const char* (*describe)(int);
  *(void**)&describe = find_one("strerrordesc_np", find_everywhere);
  const char* cause = describe ? describe((int)error) : NULL;
  out = stpcpy(out, ": ");
  return cause ? stpcpy(out, cause) : put_decimal(stpcpy(out, "error "), (uint64_t)error);
}

static bool is_standard_error_ours(void) {
  const struct stat now = status_of_standard_error();
  return standard_error.st_dev == now.st_dev && standard_error.st_ino == now.st_ino;
}

void write_message(const char* what, const char* detail, long error) {
  static const char prefix[] = "libcmttrace: ";
  if (sandbox_entered || !(kept.message ? kept.message[0] == 0 : is_standard_error_ours())) return;
  LARGE_VARIABLE static char line[2 * output_path_bytes];  // not on the stack: a thread's may be small
  const bool is_about_file = detail[0] != ';';
  char* end = stpcpy(stpcpy(line, prefix), what);
  if (is_about_file) end = stpcpy(end, detail);
  if (error) end = put_cause(end, error);
  if (!is_about_file) end = stpcpy(end, detail);
  if (kept.message) {
    const char* text = line + sizeof prefix - 1;
    memcpy(kept.message, text, strnlen(text, kept.bytes - 1));
    return;
  }
  *end++ = '\n';
  write_unnoticed(2, &(struct iovec){line, (size_t)(end - line)}, 1);
}
