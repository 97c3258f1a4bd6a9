/// The canonical line of an event (format-spec/text.md).
#pragma once

#include <stdint.h>

#include "preload/record.h"

enum { line_bytes_max = 512 };

struct Line {
  const struct Call* call;
  uint64_t given_tag;  ///< 0: unknown, and left out
  uint64_t result_tag;
  uint64_t time_ns;  ///< UINT64_MAX: not recorded
  uint32_t thread;
};

/// Writes the line with its end; returns where it ends. At most line_bytes_max bytes.
char* line_write(char* out, const struct Line* line);

/// Whether calls of this kind return a block.
bool line_allocates(enum CallKind kind);

char* line_text(char* out, const char* text);
char* line_decimal(char* out, uint64_t value);
/// A value of an attribute, of the header or a label: quoted, with escapes. At most 4 bytes for one, and 2.
char* line_quoted(char* out, const char* text, uint64_t length);
