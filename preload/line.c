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
  static const char pairs[] =
      "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354"
      "555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
  char digits[20];
  char* const end = digits + sizeof digits;
  char* first = end;
  for (; value >= 100; value /= 100) first = memcpy(first - 2, pairs + value % 100 * 2, 2);
  first = memcpy(first - 2, pairs + value * 2, 2);
  first += *first == '0' && value < 10;
  size_t length = (size_t)(end - first);
  memcpy(out, first, length);
  return out + length;
}

static char* hexadecimal(char* out, uint64_t value) {
  int count = value ? (67 - __builtin_clzll(value)) / 4 : 1;
  for (char* at = out + count; at > out; value >>= 4) *--at = hex_digits[value & 15];
  return out + count;
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
