/// What a trace says before its first event (format-spec/text.md, "Header").
#pragma once

#include <stddef.h>

enum { header_bytes_max = 96 * 1024 };

/// Writes at most header_bytes_max bytes, and returns the end. `room` is that large.
char* header_write(char* room, int process);
