// Changes the filter of block_filter.h. No lock: threads and their signal handlers change bytes at the same time.
#include "preload/program/block_filter.h"

enum { cell_bytes = 64 };

uint8_t* block_filter;

bool block_filter_begin(void) {
  if (!block_filter) block_filter = sys_map_quietly(block_filter_bytes);
  return block_filter != NULL;
}

static void change(const void* block, int by) {
  uint8_t* byte = block_filter_at(block);
  uint8_t count = __atomic_load_n(byte, __ATOMIC_RELAXED);
  while (count != block_filter_always &&
         !__atomic_compare_exchange_n(byte, &count, (uint8_t)(count + by), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
}

void block_filter_add(const void* block) { change(block, 1); }
void block_filter_remove(const void* block) { change(block, -1); }

void block_filter_add_always(const void* begin, size_t bytes) {
  const char* const end = (const char*)begin + bytes + cell_bytes - 1;
  for (const char* at = begin; block_filter && at < end; at += cell_bytes)
    __atomic_store_n(block_filter_at(at), block_filter_always, __ATOMIC_RELAXED);
}

void block_filter_clear(void) {
  for (size_t i = 0; i < block_filter_bytes; i++) {
    if (block_filter[i] != block_filter_always) block_filter[i] = 0;
  }
}
