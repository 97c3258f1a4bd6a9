/* Writes to blocks as touch.h describes. */
#include "cmtreplay/worker/touch.h"

#include <string.h>
#include <sys/mman.h>

void touch_block(const struct control* control, char* block, size_t from, size_t size) {
  switch ((enum touch)control->touch) {
    case touch_none:
      break;
    case touch_first:
      if (from == 0) *(volatile char*)block = 1;
      break;
    case touch_pages:
      write_pages(block, from, size);
      break;
    case touch_all:
      memset(block + from, 1, size - from);
      break;
  }
}

void touch_recorded(char* block, const uint64_t* words) {
  const uint64_t offset = words[0], count = words[1], distance = words[2], size = words[3];
  if (!block) return;
  for (uint64_t i = 0; i < count; ++i) *(volatile char*)(block + offset + i * distance) = 1;
  if (size) *(volatile char*)(block + size - 1) = 1;
}

void touch_discard(char* block, const uint64_t* words) {
  if (!block) return;
  const uintptr_t begin = (uintptr_t)next_page(block + words[0] - 1);
  const uintptr_t end = (uintptr_t)(block + words[0] + words[1]) & ~(uintptr_t)(page_bytes - 1);
  if (begin < end) madvise((void*)begin, end - begin, MADV_DONTNEED);
}
