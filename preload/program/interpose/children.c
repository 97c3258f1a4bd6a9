// wait() and its like, in a process that inherits orphans: a child subreaper (PR_SET_CHILD_SUBREAPER), or the first
// process of a container.
//
// A supervisor (collector_start.h) may live longer than its program, and a collector longer than its supervisor. The
// kernel then makes the supervisor or collector a child of the process that inherits orphans, with SIGCHLD as its exit
// signal. There wait() would return a child that the program knows nothing of. So each wait for any child first asks
// which child would be returned. A supervisor or collector is reaped here, and the wait is repeated. Waits for one
// child or a group pass: supervisors and collectors are in groups of their own.
//
// In any process, a wait for any child, clones too (__WALL), would return the supervisor. Without another child it
// would wait for the supervisor. strace(1) and gdb(1) wait so. The supervisor is ended before such a call.
//
// Where orphans are inherited, the program can still notice three things. A signal SIGCHLD is sent. While there is no
// other child, wait() waits, and then fails with ECHILD, as it should have done at once. With __WALL it waits for its
// own supervisor, and so for ever: if the supervisor ended, the program would inherit the collector.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "preload/program/collector_start.h"
#include "preload/program/interpose/interpose.h"
#include "preload/text.h"

// They are recognised by their names, which stay when they have ended.
static bool is_ours(pid_t child) {
  static const char supervisor[] = "Name:\t" SUPERVISOR_NAME "\n", collector[] = "Name:\t" COLLECTOR_NAME "\n";
  char path[48], text[2048];
  strcpy(put_decimal(stpcpy(path, "/proc/"), (uint64_t)child), "/status");
  const long file = sys_open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const long got = sys(SYS_read, file, text, sizeof text - 1);
  sys(SYS_close, file);
  text[got > 0 ? got : 0] = 0;
  return strstr(text, "\nState:\tZ") &&
         (strncmp(text, supervisor, strlen(supervisor)) == 0 || strncmp(text, collector, strlen(collector)) == 0);
}

// Waits until a child of the program can be waited for: that one is in `found`, and stays. Returns what waitid does.
static int find_child(siginfo_t* found, int options) {
  for (;;) {
    found->si_pid = 0;
    const int failed = real.waitid(P_ALL, 0, found, options | WNOWAIT);
    if (failed || found->si_pid == 0 || !is_ours(found->si_pid)) return failed;
    sys(SYS_wait4, found->si_pid, 0, __WALL | WNOHANG, 0);
  }
}

// wait4(-1) where orphans are inherited. Another thread may be faster.
static pid_t wait_for_own(int* status, int options, struct rusage* used) {
  const int saved = errno;
  for (siginfo_t found;;) {
    if (find_child(&found, options | WEXITED) != 0) return -1;
    if (found.si_pid == 0) return 0;
    const pid_t child = real.wait4(found.si_pid, status, options | WNOHANG, used);
    if (child > 0) errno = saved;
    if (child > 0 || (child < 0 && errno != ECHILD)) return child;
  }
}

// Before each wait: whether wait_for_own() must do it. Ends the supervisor if the wait would return it.
static bool prepare_wait(pid_t child, int options) {
  real_find_required();
  if (child != -1) return false;
  if (inherits_orphans()) return true;
  if (options & (__WALL | __WCLONE)) end_supervisor();
  return false;
}

EXPORT pid_t wait(int* status) { return prepare_wait(-1, 0) ? wait_for_own(status, 0, NULL) : real.wait(status); }
OURS(wait);

EXPORT pid_t waitpid(pid_t child, int* status, int options) {
  return prepare_wait(child, options) ? wait_for_own(status, options, NULL) : real.waitpid(child, status, options);
}
OURS(waitpid);

EXPORT pid_t wait3(int* status, int options, struct rusage* used) {
  return prepare_wait(-1, options) ? wait_for_own(status, options, used) : real.wait3(status, options, used);
}
OURS(wait3);

EXPORT pid_t wait4(pid_t child, int* status, int options, struct rusage* used) {
  return prepare_wait(child, options) ? wait_for_own(status, options, used) : real.wait4(child, status, options, used);
}
OURS(wait4);

EXPORT int waitid(idtype_t kind, id_t child, siginfo_t* info, int options) {
  if (!prepare_wait(kind == P_ALL ? -1 : 0, options)) return real.waitid(kind, child, info, options);
  const int saved = errno;
  for (siginfo_t found;;) {
    if (find_child(&found, options) != 0) return -1;
    const pid_t looked_at = found.si_pid;
    if (looked_at != 0 && !(options & WNOWAIT)) {
      const int failed = real.waitid(P_PID, (id_t)looked_at, &found, options | WNOHANG);
      if ((failed && errno == ECHILD) || (!failed && found.si_pid == 0)) continue;  // another thread was faster
      if (failed) return -1;
      errno = saved;
    }
    if (info) *info = found;
    return 0;
  }
}
OURS(waitid);
