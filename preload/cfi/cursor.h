/// The one place at which bytes of .eh_frame are read. A cursor never leaves [at, end), asks for a new window where the
/// last one ends, and after a failure returns zeros and stays failed.
#pragma once

#include <string.h>

#include "preload/cfi/cfi.h"

/// An assertion. It stops at an illegal instruction, because the recorder reads tables in signal handlers too.
#ifdef NDEBUG
#define cfi_must(condition) ((void)sizeof((condition) ? 1 : 0))
#else
#define cfi_must(condition) ((condition) ? (void)0 : __builtin_trap())
#endif

struct CfiCursor {
  const struct CfiTables* tables;
  uint64_t at, end;
  const uint8_t* bytes;  // those from `at` on that are known to be readable
  size_t readable;
  bool failed;
};

static inline struct CfiCursor cfi_cursor(const struct CfiTables* tables, uint64_t at, uint64_t end) {
  return (struct CfiCursor){tables, at, end, NULL, 0, at > end};
}

static inline bool cfi_has_more(const struct CfiCursor* in) { return !in->failed && in->at < in->end; }

static inline bool cfi_fail(struct CfiCursor* in) {
  in->readable = 0;
  in->failed = true;
  return false;
}

static inline bool cfi_open_window(struct CfiCursor* in) {
  cfi_must(in->readable == 0);
  if (!cfi_has_more(in)) return cfi_fail(in);
  in->readable = in->tables->window(in->tables->context, in->at, &in->bytes);
  if (in->readable > in->end - in->at) in->readable = (size_t)(in->end - in->at);
  cfi_must(in->readable <= in->end - in->at);
  return in->readable > 0 || cfi_fail(in);
}

static inline uint8_t cfi_read_byte(struct CfiCursor* in) {
  if (in->readable == 0 && !cfi_open_window(in)) return 0;
  in->at++;
  in->readable--;
  return *in->bytes++;
}

/// Ends the cursor `bytes` from here.
static inline void cfi_end_after(struct CfiCursor* in, uint64_t bytes) {
  cfi_must(bytes <= in->end - in->at);
  in->end = in->at + bytes;
  if (in->readable > bytes) in->readable = (size_t)bytes;
}

static inline void cfi_skip(struct CfiCursor* in, uint64_t bytes) {
  if (in->failed || bytes > in->end - in->at) {
    cfi_fail(in);
    return;
  }
  const size_t within = bytes < in->readable ? (size_t)bytes : in->readable;
  in->at += bytes;
  in->bytes += within;
  in->readable -= within;
}

/// Reads a number of up to 8 bytes, little endian.
static inline uint64_t cfi_read_number(struct CfiCursor* in, unsigned bytes, bool is_signed) {
  cfi_must(bytes >= 1 && bytes <= 8);
  const unsigned unused = 64 - 8 * bytes;
  uint64_t number = 0;
  if (in->readable >= bytes) {
    memcpy(&number, in->bytes, bytes);
    in->at += bytes;
    in->bytes += bytes;
    in->readable -= bytes;
  } else {
    for (unsigned i = 0; i < bytes; i++) number |= (uint64_t)cfi_read_byte(in) << (8 * i);
  }
  return is_signed ? (uint64_t)((int64_t)(number << unused) >> unused) : number;
}

/// Reads a number in LEB128, of which 64 bits take 10 bytes at most.
static inline uint64_t cfi_read_leb(struct CfiCursor* in, bool is_signed) {
  uint64_t number = 0;
  unsigned shift = 0;
  uint8_t byte = 0x80;
  for (; byte & 0x80 && !in->failed; shift += 7) {
    if (shift > 63) {
      cfi_fail(in);
      return 0;
    }
    byte = cfi_read_byte(in);
    number |= (uint64_t)(byte & 0x7f) << shift;
  }
  if (is_signed && shift < 64 && byte & 0x40) number |= ~(uint64_t)0 << shift;
  return number;
}

static inline uint64_t cfi_read_uleb(struct CfiCursor* in) { return cfi_read_leb(in, false); }
static inline int64_t cfi_read_sleb(struct CfiCursor* in) { return (int64_t)cfi_read_leb(in, true); }

// The low 4 bits of an encoding are the pointer's format, the next 3 its base. Compilers for x86-64 use no other base.
enum { cfi_relative_to_itself = 0x10, cfi_omitted = 0xff };

static inline uint64_t cfi_read_encoded(struct CfiCursor* in, uint8_t encoding) {
  static const uint8_t bytes_of[16] = {8, 0, 2, 4, 8, 0, 0, 0, 8, 0, 2, 4, 8, 0, 0, 0};
  const uint64_t place = in->at;
  const uint8_t format = encoding & 15, base = encoding & 0x70;
  uint64_t value = 0;
  if (encoding == cfi_omitted) return 0;
  if (base && base != cfi_relative_to_itself)
    cfi_fail(in);
  else if (format == 1)
    value = cfi_read_uleb(in);
  else if (format == 9)
    value = (uint64_t)cfi_read_sleb(in);
  else if (bytes_of[format])
    value = cfi_read_number(in, bytes_of[format], format & 8);
  else
    cfi_fail(in);
  return base ? value + place : value;
}
