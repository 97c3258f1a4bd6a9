#include "preload/window.h"

#include <sys/mman.h>

#include "preload/sys.h"

static struct {
  char* begin;
  size_t skipped;  // bytes before the offset asked for: a mapping begins at a page
} window;

// The space is reserved first: writing to a mapping of a full disk is SIGBUS, in the traced program.
char* window_open(int fd, uint64_t offset) {
  window_close();
  uint64_t first = offset & ~(uint64_t)4095;
  if (sys(SYS_fallocate, fd, 0, first, window_bytes) != 0) return NULL;
  long begin = sys(SYS_mmap, 0, window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, first);
  if (begin < 0 && begin > -4096) return NULL;
  window.begin = (char*)begin;
  window.skipped = offset - first;
  return window.begin + window.skipped;
}

size_t window_room(void) { return window.begin ? window_bytes - window.skipped : 0; }

void window_close(void) {
  if (window.begin) sys_unmap(window.begin, window_bytes);
  window.begin = NULL;
}
