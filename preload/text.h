/// Text without libc's formatting, which allocates and takes locks.
#pragma once

#include <stdbool.h>
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

/// What is not UTF-8, as a trace's words are, becomes question marks.
static inline void make_utf8(char* text, size_t length) {
  for (size_t i = 0; i < length;) {
    unsigned char c = (unsigned char)text[i];
    size_t more = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : 9;
    bool whole = more < 9 && i + more < length;
    for (size_t k = 1; whole && k <= more; k++) whole = ((unsigned char)text[i + k] & 0xc0) == 0x80;
    if (!whole) text[i] = '?';
    i += whole ? more + 1 : 1;
  }
}
