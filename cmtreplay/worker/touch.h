/* Touching: the least that a program would do to a block. Without it resident memory would mean nothing. calloc's
 * blocks are written to as well: a compiler fills its tables, and when they were only read its heap came out 13 % too
 * small (bench/fidelity). Where the trace tells which pages of a block the program wrote to, and when, these are
 * written then, and no others. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cmtreplay/protocol.h"

static inline char* next_page(char* at) { return (char*)(((uintptr_t)at | (page_bytes - 1)) + 1); }

/* One write into every page from a byte on, that byte and the last one among them. */
static inline void write_pages(char* block, size_t from, size_t size) {
  if (!block || from >= size) return;
  volatile char* const last = block + size - 1;
  block[from] = 1;
  for (char* page = next_page(block + from); page < last; page = next_page(page)) *(volatile char*)page = 1;
  *last = 1;
}

/* As control->touch says, unless touches of so large a block were recorded. Of a block that was resized, from the first
 * new byte on. */
void touch_block(const struct control* control, char* block, size_t from, size_t size);

/* The words of a control_touch. */
void touch_recorded(char* block, const uint64_t* words);
