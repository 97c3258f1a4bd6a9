// A write to a mapping for which the disk has no space is SIGBUS, in the traced program. So the file is first made
// longer by writing zeros. That is cheaper than fallocate, too: pages that were only reserved are read before they are
// changed (on a churn of 2 M events, 70 ns of system time an event against 55).
#include "preload/window.h"

#include <stdbool.h>

#include <sys/mman.h>

#include "preload/sys.h"

enum { populate_write = 23 };  // MADV_POPULATE_WRITE, since Linux 5.14: one call in place of a fault a page

static struct {
  char* begin;
  size_t bytes;
  size_t skipped;  // bytes before the offset asked for: a mapping begins at a page
} window;

static bool lengthen(int fd, uint64_t from, uint64_t to) {
  static const char zeros[16 * 1024];
  while (from < to) {
    uint64_t count = to - from < sizeof zeros ? to - from : sizeof zeros;
    long done = sys(SYS_pwrite64, fd, zeros, count, from);
    if (done == -EINTR) continue;
    if (done <= 0) return false;
    from += (uint64_t)done;
  }
  return true;
}

char* window_open(int fd, uint64_t offset, size_t bytes) {
  window_close();
  uint64_t first = offset & ~(uint64_t)4095;
  if (!lengthen(fd, offset, first + bytes)) return NULL;
  long begin = sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, first);
  if (begin < 0 && begin > -4096) return NULL;
  sys(SYS_madvise, begin, bytes, populate_write);
  window.begin = (char*)begin;
  window.bytes = bytes;
  window.skipped = offset - first;
  return window.begin + window.skipped;
}

size_t window_room(void) { return window.begin ? window.bytes - window.skipped : 0; }

void window_close(void) {
  if (window.begin) sys_unmap(window.begin, window.bytes);
  window.begin = NULL;
}
