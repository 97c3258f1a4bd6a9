// Starts supervisor and collector as collector_start.h describes: first checks limits and creates files, then clones.
#include "preload/program/collector_start.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "preload/program/kernel.h"
#include "preload/program/launch/hand_over.h"
#include "preload/program/launch/status.h"
#include "preload/program/real.h"
#include "preload/program/rings.h"
#include "preload/program/settings.h"
#include "preload/text.h"

enum {
  creations_max = 100,
  stack_bytes = 64 * 1024,
  above_all = 16,
  descriptors_needed = 24,
  start_tenths_max = 20,
  address_space_needed = 16 << 20
};

/// The progress of a supervisor.
enum Progress { not_begun, has_name, has_collector };

LARGE_VARIABLE static char path[output_path_bytes];  // the file that was created last
static bool is_path_refused;
static const char* refused_type;
static char* stack;
static long supervisor;
static uint32_t is_gone;
static bool is_copy;       // the supervisor does not share our memory
static uint32_t progress;  // of the supervisor
static struct Control* shared;
static uint64_t begun_ns;  // the start of the trace that was reported; 0: none was

/// The collector's descriptors from collector_memory on.
static int inherited[collector_output - collector_memory + outputs_max];
static int inherited_count;

// Locks the trace against readers. The collector inherits the lock with the descriptor. False: a launcher is about to
// replace the file.
static bool lock_trace(long fd) {
  struct flock both = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = lock_at_work, .l_len = lock_is_awaited + 1 - lock_at_work};
  const long failed = sys(SYS_fcntl, fd, F_OFD_SETLK, &both);
  return failed != -EAGAIN && failed != -EACCES;
}

// Returns a locked file. A trace contains the program's words and the names of its functions. So it is for its user
// alone.
static long create_trace(uint32_t which, int process) {
  for (int tries = 0; tries < creations_max; tries++) {
    const long fd = path_create(path, which, process, 0600);
    if (fd < 0 || lock_trace(fd)) return fd;
    sys(SYS_close, fd);
  }
  return -EEXIST;
}

// A line about a trace in CMTTRACE_STATUS.
static void report(const struct Control* control, long fd, const char* event, const char* trace) {
  LARGE_VARIABLE static char line[output_path_bytes + 128];
  char* end = put_decimal(stpcpy(line, "pid="), control->process);
  end = stpcpy(put_decimal(stpcpy(end, " start_ns="), control->start_ns), event);
  end = stpcpy(stpcpy(stpcpy(end, " path="), trace), "\n");
  if (fd >= 0) write_unnoticed(fd, &(struct iovec){line, (size_t)(end - line)}, 1);
}

// Whether a line of `text` reports that this process has begun a trace by the name in `path`.
static bool has_line_of_path(const struct Control* control, const char* text) {
  static const char middle[] = " begun=1 path=";
  char begin[48];
  *put_decimal(stpcpy(begin, "pid="), control->process) = 0;
  for (const char* at = text; (at = strstr(at, path)); at++) {
    const char* line = at;
    while (line > text && line[-1] != '\n') line--;
    const bool is_own = strncmp(line, begin, strlen(begin)) == 0 && line[strlen(begin)] == ' ';
    const bool is_begin = at - line > (long)sizeof middle && memcmp(at - strlen(middle), middle, strlen(middle)) == 0;
    if (is_own && is_begin && at[strlen(path)] == '\n') return true;
  }
  return false;
}

// Whether this process has begun the file at its trace's path before an exec. Then the launcher's status file has a
// line for it. Without one, the file is another recording's. Without a launcher, the answer is yes.
static bool has_earlier_trace(const struct Control* control) {
  struct stat status;
  const char* const name = status_path();
  if (!path_expand(path, 0, (int)control->process) || sys_stat(path, &status) != 0) return false;
  const long file = name ? sys_open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
  if (file < 0) return true;
  const size_t bytes = sys(SYS_fstat, file, &status) == 0 ? (size_t)status.st_size : 0;
  char* const text = sys_map(bytes + 1);
  size_t length = 0;
  while (text && length < bytes) {
    const long got = sys(SYS_read, file, text + length, bytes - length);
    if (got <= 0) break;
    length += (size_t)got;
  }
  sys(SYS_close, file);
  const bool has = text && has_line_of_path(control, text);
  if (text) sys(SYS_munmap, text, bytes + 1);
  return has;
}

static long create_outputs(struct Control* control, int descriptors[outputs_max], long status) {
  control->outputs = 0;
  if (settings_want_no_trace()) return strcpy(control->paths[0], control->pprof_path), 0;
  const bool moves = has_earlier_trace(control);
  for (uint32_t i = 0; i < trace_path_count(); i++) {
    if (moves && path_move_aside(path, i, (int)control->process) == 0 && i == 0)
      report(control, status, " renamed=1", path);
    long fd = create_trace(i, (int)control->process);
    struct stat taken;
    if (fd == -EEXIST && sys_stat(path, &taken) == 0 && !S_ISREG(taken.st_mode))
      refused_type = ": a trace is a regular file, and this is none; the program goes on untraced";
    if (fd < 0) return fd;
    strcpy(control->paths[i], path);
    descriptors[control->outputs++] = (int)fd;
  }
  return 0;
}

static long create_fifo(struct Control* control) {
  struct stat status;
  if (!path_is_given(path_control)) return 0;
  if (!path_expand(path, path_control, (int)control->process)) return -ENAMETOOLONG;
  long failed = sys_mknod(path, S_IFIFO | 0600);
  control->made_control = failed == 0;
  if (failed == -EEXIST && sys_lstat(path, &status) == 0 && S_ISFIFO(status.st_mode)) failed = 0;
  if (failed == -EEXIST)
    refused_type = ": commands come through a FIFO, and this is none; the program goes on untraced";
  if (!failed) strcpy(control->control_path, path);
  return failed;
}

static long open_status(int process) {
  if (!path_is_given(path_status)) return -1;
  if (!path_expand(path, path_status, process)) return -ENAMETOOLONG;
  const int create = status_must_exist() ? 0 : O_CREAT;
  return sys_open(path, O_WRONLY | create | O_APPEND | O_CLOEXEC, 0666);
}

// "pid=7 start_ns=9 refused=1 errno=24 path=perl". The start is that of a trace which was reported already.
bool collector_report_refusal(long error) {
  char begin[128];
  char* end = put_decimal(stpcpy(begin, "pid="), (uint64_t)sys(SYS_getpid, 0));
  if (begun_ns) end = put_decimal(stpcpy(end, " start_ns="), begun_ns);
  end = stpcpy(put_decimal(stpcpy(end, " refused=1 errno="), (uint64_t)error), " path=");
  const struct iovec pieces[] = {status_piece(begin, (size_t)(end - begin)),
                                 status_piece(program_name(), strcspn(program_name(), "\n")), status_piece("\n", 1)};
  return status_append(pieces, sizeof pieces / sizeof *pieces);
}

// From /proc: programs write over argv, and after an exec the collector would read the next program's.
static void describe_command(struct Control* control) {
  LARGE_VARIABLE static char words[command_bytes_max];
  long file = sys_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  size_t length = 0;
  for (long got = 1; got > 0 && length < sizeof words;) {
    got = sys(SYS_read, file, words + length, sizeof words - length);
    if (got > 0) length += (size_t)got;
  }
  sys(SYS_close, file);
  put_command(control->command, sizeof control->command, words, length, control->forked != 0);
}

static void describe_program(struct Control* control) {
  size_t length = strnlen(program_name(), sizeof control->program - 1);
  memcpy(control->program, program_name(), length);
  make_utf8(control->program, length);
  describe_command(control);
}

static void remove_files(const struct Control* control) {
  for (uint32_t i = 0; i < control->outputs; i++) sys_unlink(control->paths[i]);
  if (control->made_control) sys_unlink(control->control_path);
}

static void close_outputs(struct Control* control, const int descriptors[outputs_max]) {
  while (control->outputs) sys(SYS_close, descriptors[--control->outputs]);
}

// A forked child that may not write to CMTTRACE_STATUS (it has changed its user or root) is recorded all the same.
static long create_files(struct Control* control, int descriptors[outputs_max]) {
  long status = open_status((int)control->process);
  if (status >= 0) strcpy(control->status_path, path);
  if (status < 0 && path_is_given(path_status) && !status_must_exist() && !control->forked) return status;
  if (path_is_given(path_pprof) && !path_expand(control->pprof_path, path_pprof, (int)control->process))
    return -ENAMETOOLONG;
  long failed = create_fifo(control);
  if (!failed) failed = create_outputs(control, descriptors, status);
  if (failed) {
    remove_files(control);
    close_outputs(control, descriptors);
  } else {
    describe_program(control);
    report(control, status, " begun=1", control->paths[0]);
    begun_ns = control->start_ns;
  }
  if (status >= 0) sys(SYS_close, status);
  return failed;
}

// The collector may need more descriptors than the program's soft limit, and raises it.
static bool are_descriptors_enough(void) {
  struct rlimit files;
  return sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &files) != 0 || files.rlim_max >= descriptors_needed;
}

// A limit that the collector cannot raise.
static bool is_space_enough(void) {
  struct rlimit space;
  return sys(SYS_prlimit64, 0, RLIMIT_AS, 0, &space) != 0 || space.rlim_max >= address_space_needed;
}

static void raise_limit(int resource) {
  struct rlimit limit;
  if (sys(SYS_prlimit64, 0, resource, 0, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  sys(SYS_prlimit64, 0, resource, &limit, 0);
}

// Moves the descriptors above the numbers that they go to first, so that none overwrites another.
static void arrange_descriptors(void) {
  long high[sizeof inherited / sizeof *inherited];
  for (int i = 0; i < inherited_count; i++) high[i] = sys(SYS_fcntl, inherited[i], F_DUPFD_CLOEXEC, above_all);
  long null = sys_open("/dev/null", O_RDWR | O_CLOEXEC);
  null = sys(SYS_fcntl, null, F_DUPFD_CLOEXEC, above_all);
  for (int fd = 0; fd < collector_memory; fd++) {
    if (sys(SYS_dup3, null, fd, 0) < 0) sys(SYS_close, fd);
  }
  for (int i = 0; i < inherited_count; i++) {
    if (high[i] < 0 || sys(SYS_dup3, high[i], collector_memory + i, 0) < 0) sys(SYS_close, collector_memory + i);
  }
  sys(SYS_close_range, collector_memory + inherited_count, ~0u, 0);
}

// In the process that becomes the collector, in the program's memory: it calls only the kernel, and never returns.
static int become_collector(void* unused) {
  (void)unused;
  static const uint64_t by_default[4] = {0};  // of the kernel's struct sigaction: handler, flags, restorer, mask
  static const uint64_t none = 0;
  static const char* arguments[] = {NULL, "--attach", NULL};
  arguments[0] = collector_program();
  sys(SYS_setpgid, 0, 0);
  raise_limit(RLIMIT_NOFILE);
  raise_limit(RLIMIT_AS);
  arrange_descriptors();
  for (int signal = 1; signal <= 64; signal++) sys(SYS_rt_sigaction, signal, by_default, 0, 8);
  sys(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
  sys(SYS_execve, arguments[0], arguments, collector_environment());
  sys(SYS_exit_group, 127);
  return 0;
}

static void make_progress(enum Progress next) {
  __atomic_store_n(&progress, next, __ATOMIC_RELEASE);
  sys(SYS_futex, &progress, FUTEX_WAKE, 0x7fffffff);
}

static int run_supervisor(void* unused) {
  (void)unused;
  sys(SYS_prctl, PR_SET_NAME, SUPERVISOR_NAME);
  make_progress(has_name);
  sys(SYS_setpgid, 0, 0);
  long child = clone(become_collector, stack + stack_bytes / 2, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
  make_progress(has_collector);  // which has executed its program
  sys(SYS_close_range, 0, ~0u, 0);
  if (child > 0) sys(SYS_wait4, child, 0, 0, 0);
  __atomic_store_n(&is_gone, 1, __ATOMIC_RELEASE);
  sys(SYS_futex, &shared->done, FUTEX_WAKE, 0x7fffffff);
  sys(SYS_exit_group, 0);
  return 0;
}

// A debugger or strace(1) of the program does not trace the supervisor and its children.
static long start_supervisor(void) {
  if (!stack) stack = sys_map(stack_bytes);
  if (!stack) return -ENOMEM;
  int saved = errno;
  uint64_t before;
  block_signals(&before);
  progress = not_begun;
  long process = clone(run_supervisor, stack + stack_bytes, CLONE_VM | CLONE_UNTRACED, NULL);
  // An emulator of the kernel (qemu-user) has threads and forks, and nothing between. The program may see that child.
  if (process < 0 && errno == EINVAL) {
    is_copy = true;
    process = clone(run_supervisor, stack + stack_bytes, SIGCHLD, NULL);
  }
  if (process < 0) process = -errno;
  restore_signals(&before);
  errno = saved;
  return process;
}

static void close_inherited(void) {
  rings_close_descriptor();
  for (int i = 1; i < inherited_count; i++) {
    if (inherited[i] >= 0) sys(SYS_close, inherited[i]);
  }
}

long collector_start(struct Control* control) {
  is_path_refused = false;
  begun_ns = 0;
  refused_type = NULL;
  if (!collector_environment()) return -ENOMEM;
  if (!collector_program()[0]) return collector_missing_error();
  if (!are_descriptors_enough()) return -EMFILE;
  if (!is_space_enough()) return collector_has_no_room;
  long failed = create_files(control, inherited + collector_output - collector_memory);
  is_path_refused = failed != 0;
  if (failed) return failed;
  shared = control;
  inherited[0] = rings_descriptor();
  inherited[1] = (int)sys(SYS_pidfd_open, control->process, 0);
  inherited_count = collector_output - collector_memory + (int)control->outputs;
  supervisor = hand_over(control, inherited, inherited_count) ? 0 : start_supervisor();
  close_inherited();
  if (supervisor < 0) remove_files(control);
  return supervisor < 0 ? supervisor : 0;
}

const char* collector_refused_path(void) { return is_path_refused ? path : NULL; }
const char* collector_refused_type(void) { return refused_type; }

// The collector's last verdict is read after this.
bool collector_is_gone(void) { return __atomic_load_n(&is_gone, __ATOMIC_ACQUIRE) != 0; }

static bool await_progress(enum Progress wanted) {
  uint32_t now = __atomic_load_n(&progress, __ATOMIC_ACQUIRE);
  for (int tenths = 0; tenths < start_tenths_max && now < wanted; tenths++) {
    wait_timed_out(&progress, now, 1);
    now = __atomic_load_n(&progress, __ATOMIC_ACQUIRE);
  }
  return now >= wanted;
}

void collector_await_name(void) {
  if (!sandbox_entered && supervisor > 0 && !is_copy) await_progress(has_name);
}

bool collector_end_supervisor(void) {
  if (sandbox_entered || supervisor <= 0 || is_copy || inherits_orphans()) return false;
  if (!await_progress(has_collector)) return false;
  const long ended = __atomic_exchange_n(&supervisor, 0, __ATOMIC_RELAXED);  // by one thread
  if (ended <= 0 || sys(SYS_kill, ended, SIGKILL) != 0) return false;
  sys(SYS_wait4, ended, 0, __WALL, 0);
  return true;
}

void collector_reap(void) {
  if (supervisor > 0) sys(SYS_wait4, supervisor, 0, __WALL, 0);
  supervisor = 0;
}

// The supervisor's stack can be used again: in a forked child it is a copy that no supervisor runs on.
void collector_forget(void) {
  is_gone = 0;
  supervisor = 0;
}
