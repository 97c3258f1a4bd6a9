#include "preload/program/real.h"

#include <dlfcn.h>
#include <errno.h>

#include "preload/program/output.h"
#include "preload/program/record.h"
#include "preload/program/sys.h"

struct Real real;
int real_state;

static void* find(const char* name) { return dlsym(RTLD_NEXT, name); }

static void die(const char* why, const char* detail) {
  say(why, detail, 0);
  sys(SYS_exit_group, 1);
}

void* real_must(const char* name) {
  void* found = find(name);
  if (!found) die("no function behind ours: ", name);
  return found;
}

static void find_all(void) {
  *(void**)&real.malloc = real_must("malloc");
  *(void**)&real.calloc = real_must("calloc");
  *(void**)&real.realloc = real_must("realloc");
  *(void**)&real.free = real_must("free");
  *(void**)&real.posix_memalign = find("posix_memalign");
  *(void**)&real.reallocarray = find("reallocarray");
  *(void**)&real.aligned_alloc = find("aligned_alloc");
  *(void**)&real.memalign = find("memalign");
  *(void**)&real.valloc = find("valloc");
  *(void**)&real.pvalloc = find("pvalloc");
  *(void**)&real.malloc_usable_size = find("malloc_usable_size");
  *(void**)&real.free_sized = find("free_sized");
  *(void**)&real.free_aligned_sized = find("free_aligned_sized");
}

// A sanitizer's allocator has to come first: it calls dlsym, and so us, before it can be called itself. Its own
// message, or a crash in its start, would be all there is to see.
static bool sanitized(void) {
  return dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init") || dlsym(RTLD_DEFAULT, "__msan_init");
}

// The process has one thread this early: the dynamic loader's first call of malloc comes before any constructor.
bool real_find(void) {
  if (real_state != 0) return real_state == 2;
  int saved = errno;
  real_state = 1;
  say_configure();
  if (sanitized()) die("the program is built with a sanitizer, and cannot be traced", "");
  find_all();
  record_start();
  real_state = 2;
  errno = saved;
  return true;
}
