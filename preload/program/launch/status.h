/// The file of CMTTRACE_STATUS: a launcher reads there what became of the processes of its command.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/// Appends a line in one write, of at most status_pieces_max pieces. Also where the process has no descriptor left, and
/// in a child of vfork. False: there is no such file, or it cannot be written.
enum { status_pieces_max = 8 };
bool status_append(const struct iovec* pieces, int count);

static inline struct iovec status_piece(const char* text, size_t length) {
  return (struct iovec){(void*)(uintptr_t)text, length};
}
