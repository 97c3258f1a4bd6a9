// A library that knows heaptrack by weak references.
#include <stddef.h>

__attribute__((weak)) extern void heaptrack_malloc(void* block, size_t size);
__attribute__((weak)) extern void heaptrack_realloc(void* old, size_t size, void* block);
__attribute__((weak)) extern void heaptrack_free(void* block);

struct Reporter {
  void (*made)(void* block, size_t size);
  void (*moved)(void* old, size_t size, void* block);
  void (*ended)(void* block);
};
__attribute__((visibility("default"))) struct Reporter pool_reporter(void);
struct Reporter pool_reporter(void) {
  return (struct Reporter){heaptrack_malloc, heaptrack_realloc, heaptrack_free};
}
