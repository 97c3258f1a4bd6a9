/* Touching: writes the least to a block that a program would write. Without it resident memory would mean nothing.
 *
 * It writes to calloc's blocks as well. A compiler fills its tables: when a replay only read these blocks, the
 * compiler's heap was 13 % too small (bench/fidelity). If the trace has which pages of a block the program wrote to,
 * and when, these are written then, and no others. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cmtreplay/protocol.h"

static inline char* next_page(char* at) { return (char*)(((uintptr_t)at | (page_bytes - 1)) + 1); }

/* Writes a byte to every page from offset `from` on. The first and the last byte are among them. */
static inline void write_pages(char* block, size_t from, size_t size) {
  if (!block || from >= size) return;
  volatile char* const last = block + size - 1;
  block[from] = 1;
  for (char* page = next_page(block + from); page < last; page = next_page(page)) *(volatile char*)page = 1;
  *last = 1;
}

/* Writes the bytes that control->touch asks for to a block whose touches were not recorded. `from`, below `size`, is
 * the first new byte of a block that was resized, else 0. */
void touch_block(const struct control* control, char* block, size_t from, size_t size);

/* Writes the bytes that the words of a control_touch name. */
void touch_recorded(char* block, const uint64_t* words);

/* Gives back the pages that the words of a control_discard name, and that have no byte of another block. A block begins
 * elsewhere in a page than when it was recorded: a page less may be given back. The kernel refuses locked pages. */
void touch_discard(char* block, const uint64_t* words);
