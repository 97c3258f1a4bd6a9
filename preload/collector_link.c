// A child is a nuisance in a stranger's program: wait() returns it, SIGCHLD is sent for it, and if it is orphaned, a
// subreaper inherits it. The kernel leaves a child alone that was cloned with exit signal 0; but exec sets the signal
// to SIGCHLD again, so a collector that was started by exec is a child like all others. Hence two processes:
//
//     program  --clone, exit signal 0-->  keeper  --vfork, exec-->  collector
//
// The keeper never calls exec. It shares the program's memory, costs one page of stack, has no descriptors, blocks all
// signals, calls nothing but the kernel, and waits for its child; we reap it with __WCLONE. After the program's exec
// it is left as a zombie that no ordinary wait() sees, until the process ends.
#include "preload/collector_link.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/line.h"
#include "preload/name.h"
#include "preload/sys.h"

enum { stack_bytes = 64 * 1024, variables_max = 4096, wait_ms_max = 60000, start_ms_max = 10000 };

static char program[path_bytes_max];
static char** environment;
static char* stack;
static long keeper;
static int collector_input;
static int collector_file;
static int collector_memory;
static struct CollectorShared* shared;

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

// The strings are the program's own at its start; only the list is copied, without what would trace the collector.
static void copy_environment(void) {
  environment = sys_map((variables_max + 1) * sizeof(char*));
  size_t count = 0;
  for (char** v = environ; environment && v && *v && count < variables_max; v++) {
    if (!is_ours(*v)) environment[count++] = *v;
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

// In the collector-to-be, in the program's memory: only the kernel may be called, and nothing returned from.
static int become_collector(void* unused) {
  (void)unused;
  static const struct KernelAction by_default = {0};
  static const uint64_t none = 0;
  static char* arguments[] = {program, NULL};
  // Above the numbers that they go to, so that one does not overwrite the other.
  long memory = sys(SYS_fcntl, collector_memory, F_DUPFD_CLOEXEC, 4);
  long input = sys(SYS_fcntl, collector_input, F_DUPFD_CLOEXEC, 4),
       file = sys(SYS_fcntl, collector_file, F_DUPFD_CLOEXEC, 4);
  long null = sys(SYS_open, "/dev/null", O_RDWR | O_CLOEXEC);
  null = sys(SYS_fcntl, null, F_DUPFD_CLOEXEC, 4);
  sys(SYS_dup3, input, 0, 0);
  sys(SYS_dup3, file, 1, 0);
  sys(SYS_dup3, null, 2, 0);
  sys(SYS_dup3, memory, 3, 0);
  sys(SYS_close_range, memory < 0 ? 3 : 4, ~0u, 0);
  for (int signal = 1; signal <= 64; signal++) sys(SYS_rt_sigaction, signal, &by_default, 0, 8);
  sys(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
  sys(SYS_execve, program, arguments, environment);
  sys(SYS_exit_group, 127);
  return 0;
}

static int keep(void* unused) {
  (void)unused;
  sys(SYS_setsid, 0);
  long child = clone(become_collector, stack + stack_bytes / 2, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
  sys(SYS_close_range, 0, ~0u, 0);
  if (child > 0) sys(SYS_wait4, child, 0, 0, 0);
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

static long wait_for(int link, int milliseconds) {
  struct pollfd poll = {.fd = link, .events = POLLIN};
  long result;
  do result = sys(SYS_poll, &poll, 1, milliseconds);
  while (result == -EINTR);
  return result;
}

// The collector says one byte when it is there; a socket that closes instead says that it never will be.
static long greet(int link) {
  char byte;
  if (wait_for(link, start_ms_max) == 1 && sys(SYS_read, link, &byte, 1) == 1) return link;
  sys(SYS_close, link);
  return -ENOEXEC;
}

struct CollectorShared* collector_shared(void) {
  return shared;
}

void collector_forget(void) {
  if (shared) sys_unmap(shared, sizeof *shared);
  shared = NULL;
}

// Reserved, like a window of a file: a full /dev/shm must not be SIGBUS in the program.
static int share_memory(void) {
  int memory = (int)sys(SYS_memfd_create, "cmttrace", 1 /* MFD_CLOEXEC */);
  if (memory < 0) return -1;
  long begin = -1;
  if (sys(SYS_fallocate, memory, 0, 0, sizeof *shared) == 0) {
    begin = sys(SYS_mmap, 0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  }
  shared = begin < 0 && begin > -4096 ? NULL : (struct CollectorShared*)begin;
  return memory;
}

long collector_start(int file) {
  int pair[2];
  if (!program[0] || !environment) return -ENOENT;
  long failed = sys(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
  if (failed) return failed;
  collector_input = pair[1];
  collector_file = file;
  collector_memory = share_memory();
  keeper = start_keeper();
  sys(SYS_close, pair[1]);
  if (collector_memory >= 0) sys(SYS_close, collector_memory);
  if (keeper > 0) return greet(pair[0]);
  sys(SYS_close, pair[0]);
  return keeper;
}

void collector_finish(int link) {
  sys(SYS_shutdown, link, SHUT_WR);
  long ended = wait_for(link, wait_ms_max);
  sys(SYS_close, link);
  if (ended == 1) sys(SYS_wait4, keeper, 0, __WCLONE, 0);
}
