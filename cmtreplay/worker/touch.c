/* Writes to blocks as touch.h describes. */
#include "cmtreplay/worker/touch.h"

#include <string.h>

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
