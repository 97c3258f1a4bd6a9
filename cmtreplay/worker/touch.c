#include "touch.h"

#include <string.h>

void touch_block(enum touch touch, char* block, size_t from, size_t size) {
  if (!block || from >= size) return;
  switch (touch) {
    case touch_none:
      return;
    case touch_first:
      if (from == 0) *(volatile char*)block = 1;
      return;
    case touch_pages:
      write_pages(block, from, size);
      return;
    case touch_all:
      memset(block + from, 1, size - from);
      return;
  }
}
