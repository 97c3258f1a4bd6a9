/// The end of the trace's file, mapped: what is written there survives the process, whatever ends it.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { window_bytes = 256 * 1024 };

/// Maps the next bytes of the file from `offset` on, and makes the file that much longer. At least half of
/// window_bytes can be written at the address returned. NULL where the file system cannot promise the space.
char* window_open(int fd, uint64_t offset);
/// How many bytes can be written from the address that window_open returned.
size_t window_room(void);
/// Unmaps it. The file stays as long as it was made.
void window_close(void);
