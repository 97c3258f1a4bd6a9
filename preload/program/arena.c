#include "preload/program/arena.h"

#include <errno.h>
#include <stdint.h>

_Alignas(4096) char arena_memory[arena_bytes];
static size_t used;

enum { header = 16 };  // before each block: its size

void* arena_allocate(size_t alignment, size_t size) {
  if (alignment < 16) alignment = 16;
  size_t begin = (used + header + alignment - 1) & ~(alignment - 1);
  if (alignment > 4096 || size > sizeof arena_memory || begin + size > sizeof arena_memory) {
    errno = ENOMEM;
    return NULL;
  }
  used = begin + size;
  *(size_t*)(arena_memory + begin - header) = size;
  return arena_memory + begin;
}

size_t arena_size(const void* block) { return *(const size_t*)((const char*)block - header); }
