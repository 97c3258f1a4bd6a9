// A process's ends: before what is known to be one, a program that is to wait until its trace is whole does so
// (record.h).
//
// exit: our destructor may come before other libraries'. But a handler that is registered while handlers run is run
// too, after those of all libraries: that one is the end. _exit, quick_exit, abort, a failed assertion and exec run no
// handlers: they are stopped by name here. After the last three, and a failed exec, the program may still go on. What
// ends otherwise (a signal, a system call past libc) is noticed by the collector.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "preload/program/arena.h"
#include "preload/program/collector_link.h"
#include "preload/program/environment.h"
#include "preload/program/interpose.h"
#include "preload/program/name.h"
#include "preload/program/output.h"
#include "preload/program/real.h"
#include "preload/program/record.h"
#include "preload/program/sys.h"

// Found in the constructor: after a fork in a program with threads, dlsym may wait for ever.
static struct {
  void (*end)(int) __attribute__((noreturn));
  void (*quick_exit)(int) __attribute__((noreturn));
  void (*abort)(void) __attribute__((noreturn));
  void (*assert_fail)(const char*, const char*, unsigned, const char*) __attribute__((noreturn));
  int (*execve)(const char*, char* const*, char* const*);
  int (*execv)(const char*, char* const*);
  int (*execvp)(const char*, char* const*);
  int (*execvpe)(const char*, char* const*, char* const*);
  int (*fexecve)(int, char* const*, char* const*);
  int (*execveat)(int, const char*, char* const*, char* const*, int);
  int (*pthread_setname_np)(pthread_t, const char*);
} next;

static void find_next(void) {
  if (next.end) return;
  *(void**)&next.quick_exit = real_must("quick_exit");
  *(void**)&next.abort = real_must("abort");
  *(void**)&next.assert_fail = real_must("__assert_fail");
  *(void**)&next.execve = real_must("execve");
  *(void**)&next.execv = real_must("execv");
  *(void**)&next.execvp = real_must("execvp");
  *(void**)&next.execvpe = real_must("execvpe");
  *(void**)&next.fexecve = real_must("fexecve");
  *(void**)&next.execveat = real_must("execveat");
  *(void**)&next.pthread_setname_np = real_must("pthread_setname_np");
  *(void**)&next.end = real_must("_exit");
}

static void end_for_good(int status, void* unused) {
  (void)status;
  (void)unused;
  record_finish();
}

// The functions that real.c did not find are not the program's error, nor what dlerror frees its event. Not told there:
// dlerror takes gettext's lock, which the caller of the first malloc may hold (bindtextdomain).
static void forget_errors(void) {
  struct Guard guard;
  bool outermost = guard_enter(&guard, kind_own_use);
  dlerror();
  dlerror();  // frees what the first has said
  if (outermost) guard_leave();
}

// Of an allocator in the program itself, or named before us in LD_PRELOAD, we hear nothing. To call it is the only way
// to know: the address of malloc may be that of the program's own jump to it.
static void tell_of_other_malloc(void) {
  Dl_info theirs;
  struct Guard guard;
  bool outermost = guard_enter(&guard, kind_own_use);
  void* block = malloc(1);
  free(block);
  if (outermost) guard_leave();
  if (arena_owns(block) || !dladdr(dlsym(RTLD_DEFAULT, "malloc"), &theirs)) return;
  say("not recorded, because it comes before the tracer: the malloc of ", theirs.dli_fname, 0);
}

__attribute__((constructor)) static void begin(void) {
  int saved = errno;
  if (!real_ready()) return;
  forget_errors();
  find_next();
  name_configure();
  collector_configure();
  const char* fault = environment_fault();
  if (fault) record_stop(fault, "; the program goes on untraced", 0);
  record_files_allowed();
  if (record_allowed()) tell_of_other_malloc();
  at_quick_exit(record_leaving);  // the first to be registered is the last to be called
  errno = saved;
}

__attribute__((destructor)) static void end(void) { on_exit(end_for_good, NULL); }

EXPORT void _exit(int status) {
  find_next();
  record_finish();
  next.end(status);
}

EXPORT void _Exit(int status) { _exit(status); }

EXPORT void quick_exit(int status) {
  find_next();
  record_leaving();
  next.quick_exit(status);
}

EXPORT void abort(void) {
  find_next();
  record_leaving();
  next.abort();
}

EXPORT void __assert_fail(const char* assertion, const char* file, unsigned line, const char* function) {
  find_next();
  record_leaving();
  next.assert_fail(assertion, file, line, function);
}

#define EXEC(call)                    \
  __extension__({                     \
    find_next();                      \
    bool held = record_before_exec(); \
    int result = call;                \
    record_exec_failed(held);         \
    result;                           \
  })

EXPORT int execve(const char* path, char* const* arguments, char* const* environment) {
  return EXEC(next.execve(path, arguments, environment));
}

EXPORT int execv(const char* path, char* const* arguments) { return EXEC(next.execv(path, arguments)); }

EXPORT int execvp(const char* file, char* const* arguments) { return EXEC(next.execvp(file, arguments)); }

EXPORT int execvpe(const char* file, char* const* arguments, char* const* environment) {
  return EXEC(next.execvpe(file, arguments, environment));
}

EXPORT int fexecve(int file, char* const* arguments, char* const* environment) {
  return EXEC(next.fexecve(file, arguments, environment));
}

EXPORT int execveat(int folder, const char* path, char* const* arguments, char* const* environment, int flags) {
  return EXEC(next.execveat(folder, path, arguments, environment, flags));
}

// execl's arguments, as an array on the stack (the caller may be a child of vfork), and what stands after them.
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
  return execv(path, arguments);
}

EXPORT int execlp(const char* file, const char* first, ...) {
  LISTED(first, arguments, rest);
  va_end(rest);
  return execvp(file, arguments);
}

EXPORT int execle(const char* path, const char* first, ...) {
  LISTED(first, arguments, rest);
  char** environment = va_arg(rest, char**);
  va_end(rest);
  return execve(path, arguments, environment);
}

EXPORT int pthread_setname_np(pthread_t thread, const char* name) {
  find_next();
  int failed = next.pthread_setname_np(thread, name);
  if (!failed && pthread_equal(thread, pthread_self())) record_label(kind_thread_name, name);
  return failed;
}
