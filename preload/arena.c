#include "preload/arena.h"

#include <errno.h>
#include <stdint.h>

static _Alignas(4096) char memory[64 * 1024];
static size_t used;

enum { header = 16 };  // before each block: its size

void* arena_allocate(size_t alignment, size_t size) {
  if (alignment < 16) alignment = 16;
  size_t begin = (used + header + alignment - 1) & ~(alignment - 1);
  if (alignment > 4096 || size > sizeof memory || begin + size > sizeof memory) {
    errno = ENOMEM;
    return NULL;
  }
  used = begin + size;
  *(size_t*)(memory + begin - header) = size;
  return memory + begin;
}

bool arena_owns(const void* block) { return (uintptr_t)block - (uintptr_t)memory < sizeof memory; }

size_t arena_size(const void* block) { return *(const size_t*)((const char*)block - header); }
