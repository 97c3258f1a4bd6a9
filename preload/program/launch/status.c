// Appends lines to the launcher's file. A process whose table of descriptors is full lets a short-lived copy of the
// table do it.
#include "preload/program/launch/status.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "preload/program/kernel.h"
#include "preload/program/settings.h"

enum { helper_stack_bytes = 16384 };

struct Line {
  const char* path;
  int flags;
  const struct iovec* pieces;
  int count;
  bool is_written;
};

static long append_line(struct Line* line) {
  const long file = sys_open(line->path, line->flags, 0666);
  if (file < 0) return file;
  line->is_written = write_unnoticed(file, line->pieces, line->count) > 0;
  sys(SYS_close, file);
  return 0;
}

// In a process that shares the program's memory, and has a table of descriptors of its own.
static int append_in_helper(void* line) {
  sys(SYS_close_range, 0, ~0u, 0);
  for (int file = 0; file < 3; file++) sys(SYS_close, file);  // before Linux 5.9
  append_line(line);
  sys(SYS_exit, 0);
  return 0;
}

// As the supervisor (collector_start.h), the helper is hidden from the program. It is gone when clone returns.
static void let_helper_append(struct Line* line) {
  char* const stack = sys_map(helper_stack_bytes);
  if (!stack) return;
  const int saved = errno;
  uint64_t before;
  block_signals(&before);
  const long helper =
      clone(append_in_helper, stack + helper_stack_bytes, CLONE_VM | CLONE_VFORK | CLONE_UNTRACED, line);
  if (helper > 0) sys(SYS_wait4, helper, 0, __WCLONE, 0);
  restore_signals(&before);
  errno = saved;
  sys(SYS_munmap, stack, helper_stack_bytes);
}

bool status_append(const struct iovec* pieces, int count) {
  must(count <= status_pieces_max);
  const char* const path = sandbox_entered ? NULL : status_path();
  if (!path) return false;
  const int create = status_must_exist() ? 0 : O_CREAT;
  struct Line line = {path, O_WRONLY | create | O_APPEND | O_CLOEXEC | O_NOCTTY, pieces, count, false};
  const long failed = append_line(&line);
  if (failed == -EMFILE || failed == -ENFILE) let_helper_append(&line);
  return line.is_written;
}
