#include "preload/output.h"

#include <errno.h>
#include <fcntl.h>
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

void output_configure(void) { name_configure(); }

const char* output_path(void) { return path; }

static long create(uint32_t which, int process) {
  long fd = -EEXIST;
  for (int n = 1; fd == -EEXIST && n <= parts_max; n++) {
    if (!name_expand(path, which, process, n)) return -ENAMETOOLONG;
    fd = sys(SYS_open, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  return fd;
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
  return 0;
}
