#include "preload/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/describe.h"
#include "preload/name.h"
#include "preload/sys.h"
#include "preload/words.h"

enum { parts_max = 100000 };

struct Identity {
  uint64_t device;
  uint64_t inode;
};

static struct Identity standard_error;
static char path[output_path_bytes];
static char status_path[output_path_bytes];

static struct Identity identity_of(int fd) {
  struct stat status;
  if (sys(SYS_fstat, fd, &status) != 0) return (struct Identity){0, 0};
  return (struct Identity){status.st_dev, status.st_ino};
}

void say_configure(void) {
  if (!standard_error.inode) standard_error = identity_of(2);
}

void say(const char* what, const char* detail, long error) {
  struct Identity now = identity_of(2);
  if (standard_error.inode && (standard_error.device != now.device || standard_error.inode != now.inode)) return;
  static char line[2 * output_path_bytes];  // not on the stack: a thread's may be small
  char* end = put_text(put_text(put_text(line, "libcmttrace: "), what), detail);
  if (error) end = put_text(put_decimal(put_text(end, " (error "), (uint64_t)error), ")");
  *end++ = '\n';
  sys(SYS_write, 2, line, end - line);
}

void output_configure(void) {
  const char* status = getenv("CMTTRACE_STATUS");
  if (status && strlen(status) < sizeof status_path) strcpy(status_path, status);
  name_configure();
}

const char* output_path(void) { return path; }

// The collector inherits the locks with the descriptor.
static void lock(long fd) {
  struct flock both = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = lock_at_work, .l_len = lock_is_awaited + 1 - lock_at_work};
  sys(SYS_fcntl, fd, F_OFD_SETLK, &both);
}

static long create(uint32_t which, int process) {
  long fd = -EEXIST;
  for (int n = 1; fd == -EEXIST && n <= parts_max; n++) {
    if (!name_expand(path, which, process, n)) return -ENAMETOOLONG;
    fd = sys(SYS_open, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  if (fd >= 0) lock(fd);
  return fd;
}

// Of the two lines that the trace of a process has in CMTTRACE_STATUS this is the first; the collector's is the other.
static void report_begin(const struct Control* control) {
  if (!status_path[0]) return;
  long fd = sys(SYS_open, status_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return;
  static char line[output_path_bytes + 64];
  char* end = put_text(put_decimal(put_text(line, "pid="), control->process), " begun=1 path=");
  end = put_text(put_text(end, control->paths[0]), "\n");
  sys(SYS_write, fd, line, end - line);
  sys(SYS_close, fd);
}

long output_create(struct Control* control, int descriptors[outputs_max]) {
  control->outputs = 0;
  for (uint32_t i = 0; i < name_count(); i++) {
    long fd = create(i, (int)control->process);
    if (fd < 0) {
      while (control->outputs) sys(SYS_close, descriptors[--control->outputs]);
      return fd;
    }
    strcpy(control->paths[i], path);
    descriptors[control->outputs++] = (int)fd;
  }
  describe(control);
  report_begin(control);
  return 0;
}
