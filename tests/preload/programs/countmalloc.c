// Counts a program's calls of malloc(3) by kind, and the bytes asked for. The tracer is loaded before this library. The
// counts are in a mapped file, so that no end of the process loses any. COUNT_OUT names the folder; a file is named by
// program and process, and numbered as the tracer's.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

// The order in the file: calls and bytes of each.
enum Kind {
  k_malloc,
  k_free,
  k_calloc,
  k_realloc,
  k_reallocarray,
  k_aligned_alloc,
  k_posix_memalign,
  k_memalign,
  k_valloc,
  k_pvalloc,
  kinds
};

struct Count {
  _Atomic uint64_t calls;
  _Atomic uint64_t bytes;
};

static struct Count before[kinds];  // used if the file cannot be created
static struct Count* counts;
static __thread int inside;

static void create_file(void) {
  char path[4096];
  const char* folder = getenv("COUNT_OUT");
  int fd = -1;
  for (int n = 1; folder && fd < 0 && n < 100; n++) {
    char number[16] = "";
    if (n > 1) snprintf(number, sizeof number, ".%d", n);
    snprintf(path, sizeof path, "%s/%s.%d%s.count", folder, program_invocation_short_name, (int)getpid(), number);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  counts = before;
  if (fd < 0 || ftruncate(fd, 4096) != 0) return;
  void* memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory != MAP_FAILED) counts = memory;
  syscall(SYS_close, fd);
}

static void forget(void) { counts = NULL; }

static void count(enum Kind kind, uint64_t bytes) {
  if (inside) return;
  if (!counts) {
    int saved = errno;
    inside++;
    create_file();
    inside--;
    errno = saved;
  }
  counts[kind].calls++;
  counts[kind].bytes += bytes;
}

__attribute__((constructor)) static void begin(void) { pthread_atfork(NULL, NULL, forget); }

#define NEXT(name)                                     \
  static __typeof__(&name) next;                       \
  if (!next) *(void**)&next = dlsym(RTLD_NEXT, #name); \
  if (!next) _exit(99)

#define HAND_THROUGH(name, arguments)  \
  inside++;                            \
  __auto_type result = next arguments; \
  inside--;                            \
  return result

EXPORT void* malloc(size_t size) {
  NEXT(malloc);
  count(k_malloc, size);
  HAND_THROUGH(malloc, (size));
}

EXPORT void* calloc(size_t n, size_t size) {
  NEXT(calloc);
  count(k_calloc, n * size);
  HAND_THROUGH(calloc, (n, size));
}

EXPORT void* realloc(void* block, size_t size) {
  NEXT(realloc);
  count(k_realloc, size);
  HAND_THROUGH(realloc, (block, size));
}

EXPORT void* reallocarray(void* block, size_t n, size_t size) {
  NEXT(reallocarray);
  count(k_reallocarray, n * size);
  HAND_THROUGH(reallocarray, (block, n, size));
}

EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  NEXT(aligned_alloc);
  count(k_aligned_alloc, size);
  HAND_THROUGH(aligned_alloc, (alignment, size));
}

EXPORT int posix_memalign(void** block, size_t alignment, size_t size) {
  NEXT(posix_memalign);
  count(k_posix_memalign, size);
  HAND_THROUGH(posix_memalign, (block, alignment, size));
}

EXPORT void* memalign(size_t alignment, size_t size);
EXPORT void* memalign(size_t alignment, size_t size) {
  NEXT(memalign);
  count(k_memalign, size);
  HAND_THROUGH(memalign, (alignment, size));
}

EXPORT void* valloc(size_t size) {
  NEXT(valloc);
  count(k_valloc, size);
  HAND_THROUGH(valloc, (size));
}

EXPORT void* pvalloc(size_t size);
EXPORT void* pvalloc(size_t size) {
  NEXT(pvalloc);
  count(k_pvalloc, size);
  HAND_THROUGH(pvalloc, (size));
}

EXPORT void free(void* block) {
  NEXT(free);
  count(k_free, 0);
  inside++;
  next(block);
  inside--;
}
