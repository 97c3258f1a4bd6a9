// Calls that concern the process: its ends, what it forbids to itself, names of threads, and the functions of
// cmttrace.h.
//
// Ends. Before each that is known, a program that is to wait for its trace does so (tracing.h). exit: our destructor
// may come before other libraries'. But a handler that is registered while handlers run is run too, after those of all
// libraries: ours comes last. musl has none, and calls our destructor last. The ends _exit, quick_exit,
// abort, a failed assertion and exec do not run these handlers, and are interposed. After all but _exit the program may
// go on: handlers of its own run, or an exec fails. So these only ask for a whole trace (tracing_leave), and the
// recording goes on. Other ends (a signal, a system call past libc) are noticed by the collector.
//
// Namespaces: see ended_supervisor_for().
//
// Sandboxes (kernel.h). The interposed prctl and syscall, which libseccomp calls too, see a program enter one. A
// program is not seen that enters by an instruction of its own, or is within one after an exec. There a signal for a
// forbidden system call of the tracer would end it.
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "preload/program/attach/attach.h"
#include "preload/program/collector_start.h"
#include "preload/program/hooks/find.h"
#include "preload/program/hooks/hooks.h"
#include "preload/program/interpose/sampled.h"
#include "preload/program/launch/execs.h"
#include "preload/program/launch/restart.h"
#include "preload/program/settings.h"

EXPORT void cmttrace_mark(const char* label);
EXPORT void cmttrace_pause(void);
EXPORT void cmttrace_resume(void);

extern __typeof__(on_exit) on_exit __attribute__((weak));  // musl has none

enum { thread_name_bytes_max = 15 };

// A vfork child's end is not the process's. A thread that has recorded nothing yet takes a ring, unless its handler has
// interrupted a call of ours: that might allocate. A forked child without events has no trace.
static void record_pages_before_end(void) {
  const uint32_t generation = recording_generation();
  if (!large_blocks_min || generation == 0 || is_vfork_child()) return;
  if (thread_self.generation != generation && thread_self.guard) return;
  if (recording_is_on()) record_long_pages_of_all();
}

static void end_for_good(int status, void* unused) {
  (void)status;
  (void)unused;
  record_pages_before_end();
  tracing_finish();
}

static void leave(void) {
  record_pages_before_end();
  tracing_leave();
}

// at_quick_exit is a part of each library that glibc links, and calls the other one, which musl lacks.
static void notice_quick_exit(void) {
  int (*of_glibc)(void (*)(void), void*) = NULL;
  int (*of_others)(void (*)(void)) = NULL;
  const struct Wanted names[] = {{"__cxa_at_quick_exit", (void**)&of_glibc}, {"at_quick_exit", (void**)&of_others}};
  find_all(names, sizeof names / sizeof *names, find_everywhere);
  // The first to be registered is the last to be called.
  if (of_glibc)
    of_glibc(leave, &__dso_handle);
  else if (of_others)
    of_others(leave);
}

// Calls a function whose blocks are the tracer's own. They come from the arena, and are no events.
static void* call_for_own_use(void* function(void)) {
  struct Guard guard;
  bool outermost = guard_enter(&guard, guard_own_use);
  const uint64_t left = thread_self.left;
  thread_self.left = 0;  // the sampler's variant asks only then
  sampled_is_own_use = true;
  void* const result = function();
  sampled_is_own_use = false;
  thread_self.left = left;
  if (outermost) guard_leave(&guard);
  return result;
}

// Whether the program has a free of its own, and no malloc.
static bool has_free_alone(void) {
  const void* const first = find_one("free", find_everywhere);
  return first && is_program_code(first) && !is_program_code(find_one("malloc", find_everywhere));
}

// A free of the program's own may not take a block of our arena.
static void* make_block(void) {
  void* block = malloc(1);
  if (!has_free_alone()) free(block);
  return block;
}

// musl's pthread_atfork allocates.
static void* watch_forks(void) {
  notice_forks();
  return NULL;
}

// An allocator in the program itself, or named before us in LD_PRELOAD, hides us unless it calls the next one. Only a
// call shows it: the address of malloc may be that of a jump in the program.
static void report_hiding_functions(void) {
  const void* const block = call_for_own_use(make_block);
  const char* theirs = arena_owns(block) ? NULL : find_module(find_one("malloc", find_everywhere));
  if (theirs && *theirs == 0) theirs = program_invocation_name;
  if (theirs) write_message("not recorded unless it calls the next one: the malloc of ", theirs, 0);
  if (has_free_alone())
    write_message("not recorded unless it calls the next one: the free of ", program_invocation_name, 0);
}

__attribute__((constructor)) static void begin(void) {
  int saved = errno;
  if (attach_has_begun() || !tracer_is_ready()) return;
  settings_read();
  const char* fault = is_under_valgrind ? "valgrind runs the program, and cannot start the collector"
                      : getauxval(AT_PAGESZ) != block_page_bytes ? "the kernel's pages are not of 4 KiB"
                                                                 : settings_fault();
  if (fault)
    tracing_stop(fault, "; the program goes on untraced", 0);
  else
    settings_make_paths_absolute();
  call_for_own_use(watch_forks);
  start_collecting();
  if (recording_is_on()) report_hiding_functions();
  if (!tracing.is_stopped) hooks_replace(hooks_of_mallctl);
  notice_quick_exit();
  errno = saved;
}

__attribute__((destructor)) static void end(void) {
  if (on_exit)
    on_exit(end_for_good, NULL);
  else
    leave();
}

EXPORT void _exit(int status) {
  real_find_required();
  record_pages_before_end();
  tracing_finish();
  real._exit(status);
}

OURS(_exit);
EXPORT void _Exit(int status) { ours__exit(status); }
OURS(_Exit);

#define END(name, parameters, arguments) \
  EXPORT void name parameters {          \
    real_find_required();                \
    leave();                             \
    real.name arguments;                 \
  }                                      \
  OURS(name);

END(quick_exit, (int status), (status))
END(abort, (void), ())
END(__assert_fail, (const char* assertion, const char* file, unsigned line, const char* function),
    (assertion, file, line, function))

// A forked child that has recorded nothing has no supervisor: the one that it knows is its parent's.
bool end_supervisor(void) {
  return tracer_is_ready() && recording_generation() != 0 && !is_vfork_child() && collector_end_supervisor();
}

/// The preparation of an exec. exec_failed() takes it back.
struct Exec {
  bool is_held;
  enum Announcement announcement;
};

static struct Exec before_exec(int folder, const char* path, bool is_searched, char* const* environment) {
  real_find_required();
  const enum Announcement announcement = execs_announce(&(struct Execution){folder, path, is_searched, environment});
  record_pages_before_end();
  const struct Exec exec = {tracing_before_exec(), announcement};
  const int saved = errno;
  end_supervisor();  // one that is left would have the kernel send SIGCHLD to the next program (collector_start.h)
  errno = saved;
  return exec;
}

static int exec_failed(struct Exec exec, int result) {
  const int saved = errno;
  tracing_exec_failed(exec.is_held);
  execs_take_back(exec.announcement);
  errno = saved;
  return result;
}

#define EXEC(name, parameters, folder, path, is_searched, environment, ...)       \
  EXPORT int name parameters {                                                    \
    const struct Exec exec = before_exec(folder, path, is_searched, environment); \
    return exec_failed(exec, real.name(__VA_ARGS__));                             \
  }                                                                               \
  OURS(name);

extern char** environ;

EXEC(execv, (const char* path, char* const* arguments), AT_FDCWD, path, false, environ, path, arguments)
EXEC(execvp, (const char* file, char* const* arguments), AT_FDCWD, file, true, environ, file, arguments)
EXEC(execve, (const char* path, char* const* arguments, char* const* environment), AT_FDCWD, path, false, environment,
     path, arguments, environment)
EXEC(execvpe, (const char* file, char* const* arguments, char* const* environment), AT_FDCWD, file, true, environment,
     file, arguments, environment)

// Not in glibc before 2.34.
EXPORT int execveat(int folder, const char* path, char* const* arguments, char* const* environment, int flags) {
  real_find_required();
  if (!real.execveat) {
    errno = ENOSYS;
    return -1;
  }
  const struct Exec exec = before_exec(folder, path, false, environment);
  return exec_failed(exec, real.execveat(folder, path, arguments, environment, flags));
}
OURS(execveat);

// The child that executes the program calls only the kernel.
#define SPAWN(name, is_searched)                                                                           \
  EXPORT int name(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,               \
                  const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) { \
    real_find_required();                                                                                  \
    if (!real.name) return ENOSYS;                                                                         \
    const enum Announcement announcement =                                                                 \
        execs_announce(&(struct Execution){AT_FDCWD, path, is_searched, environment});                     \
    const int error = real.name(child, path, actions, attributes, arguments, environment);                 \
    if (error) execs_take_back(announcement);                                                              \
    return error;                                                                                          \
  }
SPAWN(posix_spawn, false)
SPAWN(posix_spawnp, true)

// The C library starts the shell by calls of its own, which cannot be seen.
static enum Announcement announce_shell(void) {
  return execs_announce(&(struct Execution){AT_FDCWD, "/bin/sh", false, environ});
}

EXPORT int system(const char* command) {
  real_find_required();
  if (!real.system) return -1;
  const enum Announcement announcement = command ? announce_shell() : announced_nowhere;
  const int status = real.system(command);
  // Where SIGCHLD is ignored, it is -1 although the shell has run.
  if (status == -1 && errno != ECHILD) execs_take_back(announcement);
  return status;
}

EXPORT FILE* popen(const char* command, const char* mode) {
  real_find_required();
  if (!real.popen) return NULL;
  const enum Announcement announcement = announce_shell();
  FILE* const stream = real.popen(command, mode);
  if (!stream) execs_take_back(announcement);
  return stream;
}

// execl's arguments, as an array on the stack (the caller may be a child of vfork), and a list of the further ones.
#define LISTED(first, arguments, rest)                                               \
  va_list rest, counting;                                                            \
  va_start(rest, first);                                                             \
  va_copy(counting, rest);                                                           \
  const char* volatile given = first; /* may be NULL, whatever its attribute says */ \
  int count = 1;                                                                     \
  if (given) {                                                                       \
    for (count = 2; va_arg(counting, char*); count++) continue;                      \
  }                                                                                  \
  va_end(counting);                                                                  \
  char* arguments[count];                                                            \
  arguments[0] = (char*)first;                                                       \
  for (int i = 1; i < count; i++) arguments[i] = va_arg(rest, char*)

EXPORT int execl(const char* path, const char* first, ...) {
  LISTED(first, arguments, rest);
  va_end(rest);
  return ours_execv(path, arguments);
}
OURS(execl);

EXPORT int execlp(const char* file, const char* first, ...) {
  LISTED(first, arguments, rest);
  va_end(rest);
  return ours_execvp(file, arguments);
}
OURS(execlp);

EXPORT int execle(const char* path, const char* first, ...) {
  LISTED(first, arguments, rest);
  char** environment = va_arg(rest, char**);
  va_end(rest);
  return ours_execve(path, arguments, environment);
}
OURS(execle);

HIDDEN int ours_fexecve(int file, char* const* arguments, char* const* environment) {
  const struct Exec exec = before_exec(file, "", false, environment);
  return exec_failed(exec, real.fexecve(file, arguments, environment));
}

// The loader calls the resolver before the program begins (restart.h). musl's loader, which knows no resolvers, finds
// its own function instead. So this is one that programs seldom call.
__attribute__((used)) static __typeof__(fexecve)* choose_fexecve(void) {
  if (has_sanitizer()) restart_without_us();
  return ours_fexecve;
}
EXPORT int fexecve(int file, char* const* arguments, char* const* environment) __attribute__((ifunc("choose_fexecve")));
// Makes an entry of the procedure linkage table, for which the loader asks the resolver.
__attribute__((used)) static int use_fexecve(void) {
  char* none[] = {NULL};
  return fexecve(-1, none, none);
}

EXPORT int pthread_setname_np(pthread_t thread, const char* name) {
  real_find_required();
  if (!real.pthread_setname_np) return ENOSYS;
  int failed = real.pthread_setname_np(thread, name);
  if (failed) return failed;
  if (!pthread_equal(thread, pthread_self()))
    note_name_of_other();
  else if (recording_is_on())
    record_long_label(kind_thread_name, name);
  return failed;
}
OURS(pthread_setname_np);

static bool clock_was_slow;

// Before the call that enters a sandbox: does what needs system calls, and, if not `has_clock`, the clock. False if the
// process is in one already, or if it is a child of vfork, and not this process, that enters it.
static bool enter_sandbox(bool has_clock) {
  clock_was_slow = clock_is_slow;
  if (sandbox_entered || !tracer_is_ready() || is_vfork_child()) return false;
  if (recording_is_on()) ring_bell(asleep_briefly);
  if (tracing.control) sandbox_begin(tracing.control, clock_stamp(true));
  stacks_reserve();
  if (!has_clock) clock_is_slow = true;
  sandbox_entered = true;
  return true;
}

static void cancel_if_refused(bool is_first, long failed) {
  if (!is_first || !failed) return;
  sandbox_cancel();
  clock_is_slow = clock_was_slow;
}

// The kernel lets only a process that shares its memory with no other change these namespaces. A supervisor's memory is
// the program's, so one that is in the way ends.
static bool ended_supervisor_for(int failed) {
  return failed && (errno == EINVAL || errno == EUSERS) && end_supervisor();
}

EXPORT int setns(int file, int kind) {
  real_find_required();
  const int failed = real.setns(file, kind);
  return ended_supervisor_for(failed) ? real.setns(file, kind) : failed;
}
OURS(setns);

EXPORT int unshare(int flags) {
  real_find_required();
  const int failed = real.unshare(flags);
  return ended_supervisor_for(failed) ? real.unshare(flags) : failed;
}
OURS(unshare);

static void name_thread(const char* given) {
  char name[thread_name_bytes_max + 1] = {0};
  memcpy(name, given, strnlen(given, thread_name_bytes_max));   // the kernel reads no more
  if (tracer_state < tracer_ready || is_vfork_child()) return;  // such a child borrows the thread
  if (recording_is_on()) record_long_label(kind_thread_name, name);
}

EXPORT int prctl(int option, ...) {
  va_list list;
  va_start(list, option);
  unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long), c = va_arg(list, unsigned long),
                d = va_arg(list, unsigned long);
  va_end(list);
  real_find_required();
  bool has_clock = !(option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT);
  bool enters = option == PR_SET_SECCOMP || (option == PR_SET_TSC && a == PR_TSC_SIGSEGV);
  bool first = enters && enter_sandbox(has_clock && option != PR_SET_TSC);
  int failed = real.prctl(option, a, b, c, d);
  cancel_if_refused(first, failed);
  if (option == PR_SET_NAME && !failed) name_thread((const char*)a);
  return failed;
}
OURS(prctl);

__attribute__((used)) static long watched_syscall(long number, long a, long b, long c, long d, long e, long f) {
  real_find_required();
  if (number == SYS_prctl) return ours_prctl((int)a, b, c, d, e);
  bool enters = number == SYS_seccomp && (a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER);
  bool first = enters && enter_sandbox(a != SECCOMP_SET_MODE_STRICT);
  long result = real_syscall(number, a, b, c, d, e, f);
  cancel_if_refused(first, result);
  return result;
}

// All other system calls pass without a frame of ours: a child may return on another stack.
MACHINE_SYSCALL;

void cmttrace_mark(const char* label) {
  if (tracer_is_ready() && label && recording_is_on()) record_long_label(kind_mark, label);
}

void cmttrace_pause(void) {
  if (tracer_is_ready()) pause_recording(true);
}

void cmttrace_resume(void) {
  if (tracer_is_ready()) pause_recording(false);
}
