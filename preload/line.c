#include "preload/line.h"

#include <string.h>

// What stands between the parentheses: the block given, then so many decimals.
static const struct Form {
  const char* name;
  uint8_t given;
  uint8_t decimals;
  uint8_t allocates;
} forms[] = {
    [call_malloc] = {"malloc(", 0, 1, 1},
    [call_free] = {"free(", 1, 0, 0},
    [call_calloc] = {"calloc(", 0, 2, 1},
    [call_realloc] = {"realloc(", 1, 1, 1},
    [call_reallocarray] = {"reallocarray(", 1, 2, 1},
    [call_aligned_alloc] = {"aligned_alloc(", 0, 2, 1},
    [call_posix_memalign] = {"posix_memalign(", 0, 2, 1},
    [call_memalign] = {"memalign(", 0, 2, 1},
    [call_valloc] = {"valloc(", 0, 1, 1},
    [call_pvalloc] = {"pvalloc(", 0, 1, 1},
    [call_free_sized] = {"free_sized(", 1, 1, 0},
    [call_free_aligned_sized] = {"free_aligned_sized(", 1, 2, 0},
    [call_thread_start] = {"thread_start(", 0, 0, 0},
    [call_thread_exit] = {"thread_exit(", 0, 0, 0},
    [call_thread_name] = {"thread_name(", 0, 0, 0},
};

static const char hex_digits[] = "0123456789abcdef";

bool line_allocates(enum CallKind kind) { return forms[kind].allocates; }

char* line_text(char* out, const char* text) {
  while (*text) *out++ = *text++;
  return out;
}

char* line_decimal(char* out, uint64_t value) {
  char digits[20];
  int count = 0;
  do digits[count++] = (char)('0' + value % 10);
  while (value /= 10);
  while (count) *out++ = digits[--count];
  return out;
}

static char* hexadecimal(char* out, uint64_t value) {
  int shift = value ? (63 - __builtin_clzll(value)) & ~3 : 0;
  for (; shift >= 0; shift -= 4) *out++ = hex_digits[value >> shift & 15];
  return out;
}

static char* block(char* out, const void* address, uint64_t tag) {
  out = hexadecimal(out, (uint64_t)address);
  if (!address || !tag) return out;
  *out++ = '<';
  out = line_decimal(out, tag);
  *out++ = '>';
  return out;
}

static char* escaped(char* out, unsigned char c) {
  *out++ = '\\';
  if (c == '"' || c == '\\')
    *out++ = (char)c;
  else if (c == '\n')
    *out++ = 'n';
  else if (c == '\t')
    *out++ = 't';
  else if (c == '\r')
    *out++ = 'r';
  else {
    *out++ = 'x';
    *out++ = hex_digits[c >> 4];
    *out++ = hex_digits[c & 15];
  }
  return out;
}

char* line_quoted(char* out, const char* text, uint64_t length) {
  *out++ = '"';
  for (uint64_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
      out = escaped(out, c);
    else
      *out++ = (char)c;
  }
  *out++ = '"';
  return out;
}

static char* arguments(char* out, const struct Line* line) {
  const struct Form* form = &forms[line->call->kind];
  if (form->given) out = block(out, line->call->given, line->given_tag);
  for (int i = 0; i < form->decimals; i++) {
    if (i || form->given) out = line_text(out, ", ");
    out = line_decimal(out, line->call->arguments[i]);
  }
  if (line->call->label) out = line_quoted(out, line->call->label, strnlen(line->call->label, 64));
  return out;
}

char* line_write(char* out, const struct Line* line) {
  const struct Form* form = &forms[line->call->kind];
  out = arguments(line_text(out, form->name), line);
  *out++ = ')';
  if (form->allocates) out = block(line_text(out, " = "), line->call->result, line->result_tag);
  if (line->thread) out = line_decimal(line_text(out, " thread="), line->thread);
  if (line->time_ns != UINT64_MAX) out = line_decimal(line_text(out, " time="), line->time_ns);
  *out++ = '\n';
  return out;
}
