#include "preload/program/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/program/describe.h"
#include "preload/program/name.h"
#include "preload/program/sandbox.h"
#include "preload/program/sys.h"
#include "preload/words.h"

struct Identity {
  uint64_t device;
  uint64_t inode;
};

static struct Identity standard_error;
static char path[output_path_bytes];

static struct Identity identity_of(int fd) {
  struct stat status;
  if (sys(SYS_fstat, fd, &status) != 0) return (struct Identity){0, 0};
  return (struct Identity){status.st_dev, status.st_ino};
}

void say_configure(void) { standard_error = identity_of(2); }

void say(const char* what, const char* detail, long error) {
  if (sandbox_entered) return;
  struct Identity now = identity_of(2);
  if (standard_error.device != now.device || standard_error.inode != now.inode) return;
  static char line[2 * output_path_bytes];  // not on the stack: a thread's may be small
  char* end = put_text(put_text(put_text(line, "libcmttrace: "), what), detail);
  if (error) end = put_text(put_decimal(put_text(end, " (error "), (uint64_t)error), ")");
  *end++ = '\n';
  sys(SYS_write, 2, line, end - line);
}

const char* output_path(void) { return path; }

// The collector inherits the locks with the descriptor.
static void lock(long fd) {
  struct flock both = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = lock_at_work, .l_len = lock_is_awaited + 1 - lock_at_work};
  sys(SYS_fcntl, fd, F_OFD_SETLK, &both);
}

static long create(uint32_t which, int process) {
  long fd = name_create(path, which, process, 0666);
  if (fd >= 0) lock(fd);
  return fd;
}

// The collector reads it, from both sides, so that it stays open where nobody writes.
static long make_control(struct Control* control) {
  struct stat status;
  if (!name_is_given(name_control)) return 0;
  if (!name_expand(path, name_control, (int)control->process, 1)) return -ENAMETOOLONG;
  long failed = sys(SYS_mknod, path, S_IFIFO | 0600, 0);
  control->made_control = failed == 0;
  if (failed == -EEXIST && sys(SYS_lstat, path, &status) == 0 && S_ISFIFO(status.st_mode)) failed = 0;
  if (!failed) strcpy(control->control_path, path);
  return failed;
}

// A child that may not write there any more (another user, another root) is recorded all the same.
static long open_status(struct Control* control) {
  if (!name_is_given(name_status)) return -1;
  if (!name_expand(path, name_status, (int)control->process, 1)) return -ENAMETOOLONG;
  const int create = name_only_if_there() ? 0 : O_CREAT;
  long fd = sys(SYS_open, path, O_WRONLY | create | O_APPEND | O_CLOEXEC, 0666);
  if (fd >= 0) strcpy(control->status_path, path);
  return fd;
}

// Of the two lines that the trace of a process has in CMTTRACE_STATUS this is the first; the collector's is the other.
static void report_begin(const struct Control* control, long fd) {
  static char line[output_path_bytes + 64];
  char* end = put_text(put_decimal(put_text(line, "pid="), control->process), " begun=1 path=");
  end = put_text(put_text(end, control->paths[0]), "\n");
  sys(SYS_write, fd, line, end - line);
}

static long create_all(struct Control* control, int descriptors[outputs_max]) {
  control->outputs = 0;
  for (uint32_t i = 0; i < name_count(); i++) {
    long fd = create(i, (int)control->process);
    if (fd < 0) return fd;
    strcpy(control->paths[i], path);
    descriptors[control->outputs++] = (int)fd;
  }
  return 0;
}

void output_discard(const struct Control* control) {
  for (uint32_t i = 0; i < control->outputs; i++) sys(SYS_unlink, control->paths[i]);
  if (control->made_control) sys(SYS_unlink, control->control_path);
}

static void give_up(struct Control* control, const int descriptors[outputs_max]) {
  output_discard(control);
  while (control->outputs) sys(SYS_close, descriptors[--control->outputs]);
}

long output_create(struct Control* control, int descriptors[outputs_max]) {
  long status = open_status(control);
  if (status < 0 && name_is_given(name_status) && !name_only_if_there() && !control->forked) return status;
  long failed = make_control(control);
  if (!failed) failed = create_all(control, descriptors);
  if (failed) give_up(control, descriptors);
  if (!failed) describe(control);
  if (!failed && status >= 0) report_begin(control, status);
  if (status >= 0) sys(SYS_close, status);
  return failed;
}
