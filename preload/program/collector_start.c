// A child is a nuisance in a stranger's program: wait() returns it, SIGCHLD is sent for it, and if it is orphaned, a
// subreaper inherits it. The kernel leaves a child alone that was cloned with exit signal 0; but exec sets the signal
// to SIGCHLD again, so a collector that was started by exec is a child like all others. Hence two processes:
//
//     program  --clone, exit signal 0-->  keeper  --vfork, exec-->  collector
//
// The keeper never calls exec. It shares the program's memory, costs one page of stack, has no descriptors, blocks all
// signals, calls nothing but the kernel, and waits for its child; then it says so in the memory that it shares with
// us, and we reap it with __WCLONE. After the program's exec it is left as a zombie that no ordinary wait() sees, until
// the process ends.
//
// Each of the two is a process group: signals from the terminal pass them, and the kernel does not wake a stopped
// collector when the program ends. They stay in the program's session, where priorities count against its threads
// (sched(7), "The autogroup feature").
//
// No descriptor is left open in the program: it creates the files, the collector inherits them with the memory of the
// rings and a pidfd, and we close them. So a program that closes everything closes nothing of ours.
#include "preload/program/collector_link.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "preload/program/name.h"
#include "preload/program/output.h"
#include "preload/program/record.h"
#include "preload/program/rings.h"
#include "preload/program/sys.h"

enum { stack_bytes = 64 * 1024, variables_max = 4096, above_all = 16, descriptors_needed = 24 };

static char program[path_bytes_max];
static char** environment;
static char* stack;
static long keeper;
static volatile uint32_t gone;
static struct Control* rings;

/// What the collector gets, in the order of its numbers from collector_memory on.
static int inherited[collector_output - collector_memory + outputs_max];
static int inherited_count;

extern char** environ;

static bool try_program(const char* folder, size_t length, const char* rest) {
  if (length + strlen(rest) >= sizeof program) return false;
  memcpy(program, folder, length);
  strcpy(program + length, rest);
  return sys(SYS_access, program, X_OK) == 0;
}

static void find_program(void) {
  const char* given = getenv("CMTTRACE_COLLECTOR");
  if (given && try_program(given, strlen(given), "")) return;
  Dl_info self;
  if (given || !dladdr((void*)(uintptr_t)collector_configure, &self) || !self.dli_fname) {
    program[0] = 0;
    return;
  }
  const char* slash = strrchr(self.dli_fname, '/');
  size_t folder = slash ? (size_t)(slash - self.dli_fname) + 1 : 0;
  if (try_program(self.dli_fname, folder, "cmttrace-collector")) return;
  if (try_program(self.dli_fname, folder, "../libexec/cmt/cmttrace-collector")) return;
  if (try_program(self.dli_fname, folder, "../../libexec/cmt/cmttrace-collector")) return;
  program[0] = 0;
}

static bool is_ours(const char* variable) {
  return strncmp(variable, "LD_", 3) == 0 && strncmp(variable, "LD_LIBRARY_PATH=", 16) != 0;
}

// A copy, strings too: servers write their state over them, for ps (setproctitle), and their children need a collector.
// Without what would trace the collector.
static void copy_environment(void) {
  size_t count = 0, bytes = 0;
  for (char** v = environ; v && *v && count < variables_max; v++, count++) bytes += strlen(*v) + 1;
  environment = sys_map((count + 1) * sizeof(char*) + bytes);
  if (!environment) return;
  char* text = (char*)(environment + count + 1);
  char** copy = environment;
  for (char** v = environ; v && *v && count > 0; v++, count--) {
    if (is_ours(*v)) continue;
    *copy++ = strcpy(text, *v);
    text += strlen(text) + 1;
  }
}

void collector_configure(void) {
  find_program();
  copy_environment();
}

struct KernelAction {
  void* handler;
  unsigned long flags;
  void* restorer;
  uint64_t mask;
};

// What the collector may have beyond the program's own limit, it takes.
static bool are_descriptors_enough(void) {
  struct rlimit files;
  return sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &files) != 0 || files.rlim_max >= descriptors_needed;
}

static void raise_descriptors(void) {
  struct rlimit files;
  if (sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  sys(SYS_prlimit64, 0, RLIMIT_NOFILE, &files, 0);
}

static void arrange_descriptors(void) {
  long high[sizeof inherited / sizeof *inherited];
  // Above the numbers that they go to, so that one does not overwrite the other.
  for (int i = 0; i < inherited_count; i++) high[i] = sys(SYS_fcntl, inherited[i], F_DUPFD_CLOEXEC, above_all);
  long null = sys(SYS_open, "/dev/null", O_RDWR | O_CLOEXEC);
  null = sys(SYS_fcntl, null, F_DUPFD_CLOEXEC, above_all);
  for (int fd = 0; fd < collector_memory; fd++) {
    if (sys(SYS_dup3, null, fd, 0) < 0) sys(SYS_close, fd);
  }
  for (int i = 0; i < inherited_count; i++) {
    if (high[i] < 0 || sys(SYS_dup3, high[i], collector_memory + i, 0) < 0) sys(SYS_close, collector_memory + i);
  }
  sys(SYS_close_range, collector_memory + inherited_count, ~0u, 0);
}

// In the collector-to-be, in the program's memory: only the kernel may be called, and nothing returned from.
static int become_collector(void* unused) {
  (void)unused;
  static const struct KernelAction by_default = {0};
  static const uint64_t none = 0;
  static char* arguments[] = {program, (char*)"--attach", NULL};
  sys(SYS_setpgid, 0, 0);
  raise_descriptors();
  arrange_descriptors();
  for (int signal = 1; signal <= 64; signal++) sys(SYS_rt_sigaction, signal, &by_default, 0, 8);
  sys(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
  sys(SYS_execve, program, arguments, environment);
  sys(SYS_exit_group, 127);
  return 0;
}

static int keep(void* unused) {
  (void)unused;
  sys(SYS_setpgid, 0, 0);
  long child = clone(become_collector, stack + stack_bytes / 2, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
  sys(SYS_close_range, 0, ~0u, 0);
  if (child > 0) sys(SYS_wait4, child, 0, 0, 0);
  gone = 1;
  sys(SYS_futex, &rings->done, FUTEX_WAKE, 0x7fffffff);
  sys(SYS_exit_group, 0);
  return 0;
}

static long start_keeper(void) {
  if (!stack) stack = sys_map(stack_bytes);
  if (!stack) return -ENOMEM;
  int saved = errno;
  uint64_t all = ~(uint64_t)0, before;
  sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
  long process = clone(keep, stack + stack_bytes, CLONE_VM, NULL);
  if (process < 0) process = -errno;
  sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
  errno = saved;
  return process;
}

// A process that has had a keeper, and a keeper's stack, may not use it for the next one while that lives: only a
// forked child starts a second one, and its stack is a copy.
void collector_forget(void) {
  gone = 0;
  keeper = 0;
}

bool collector_gone(void) { return gone != 0; }

void collector_reap(void) {
  if (keeper > 0) sys(SYS_wait4, keeper, 0, __WCLONE, 0);
  keeper = 0;
}

static void close_inherited(void) {
  rings_close_descriptor();
  for (int i = 1; i < inherited_count; i++) {
    if (inherited[i] >= 0) sys(SYS_close, inherited[i]);
  }
}

long collector_start(struct Control* control) {
  if (!environment) collector_configure();
  if (!program[0] || !environment) return -ENOENT;
  if (!are_descriptors_enough()) return -EMFILE;
  long failed = output_create(control, inherited + collector_output - collector_memory);
  if (failed) {
    record_stop("cannot create ", output_path(), -failed);
    return failed;
  }
  rings = control;
  inherited[0] = rings_descriptor();
  inherited[1] = (int)sys(SYS_pidfd_open, control->process, 0);
  inherited_count = collector_output - collector_memory + (int)control->outputs;
  keeper = start_keeper();
  close_inherited();
  if (keeper < 0) output_discard(control);
  return keeper < 0 ? keeper : 0;
}
