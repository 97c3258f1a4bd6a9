/// Text without libc's formatting, which allocates and takes locks.
#pragma once

#include <stdint.h>
#include <string.h>

/// Both write without a zero byte, and return where they ended.
static inline char* put_text(char* out, const char* text) {
  size_t length = strlen(text);
  memcpy(out, text, length);
  return out + length;
}

static inline char* put_decimal(char* out, uint64_t value) {
  char digits[20], *first = digits + sizeof digits;
  do *--first = (char)('0' + value % 10);
  while (value /= 10);
  size_t length = (size_t)(digits + sizeof digits - first);
  memcpy(out, first, length);
  return out + length;
}
