// An allocator that is safe in signal handlers: addresses only rise, and free does nothing.
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static _Alignas(16) char memory[1 << 28];
static atomic_size_t used;

EXPORT void* malloc(size_t size) {
  size_t begin = atomic_fetch_add(&used, ((size + 15) & ~(size_t)15) + 16) + 16;
  if (begin + size > sizeof memory) return NULL;
  memcpy(memory + begin - 16, &size, sizeof size);
  return memory + begin;
}

EXPORT void free(void* block) { (void)block; }

EXPORT void* calloc(size_t count, size_t size) { return malloc(count * size); }

EXPORT void* realloc(void* block, size_t size) {
  size_t old = 0;
  if (block) memcpy(&old, (char*)block - 16, sizeof old);
  void* moved = malloc(size);
  return moved && old ? memcpy(moved, block, old < size ? old : size) : moved;
}
