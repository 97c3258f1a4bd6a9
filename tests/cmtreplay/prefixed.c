/* An allocator without the plain names. It has only je_malloc and je_free. For tests of --prefix. */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#define EXPORTED __attribute__((visibility("default")))

static char* next;

EXPORTED void* je_malloc(size_t size) {
  if (!next) {
    void* range =
        mmap(NULL, (size_t)1 << 36, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return NULL;
    next = range;
  }
  if (size > (size_t)1 << 30) {
    errno = ENOMEM;
    return NULL;
  }
  void* const block = next;
  next += (size + 16) & ~(size_t)15;
  return block;
}

EXPORTED void je_free(void* block) { (void)block; }
