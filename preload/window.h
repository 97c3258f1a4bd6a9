/// The end of the trace's file, mapped: what is written there survives the process, whatever ends it.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { window_bytes_min = 16 * 1024, window_bytes_max = 256 * 1024 };

/// Maps the next `bytes` (a power of two) of the file from the page of `offset` on, and makes the file that much
/// longer. Returns where `offset` is; NULL where there is no space, or the file cannot be mapped.
char* window_open(int fd, uint64_t offset, size_t bytes);
/// How many bytes can be written from the address that window_open returned.
size_t window_room(void);
/// Unmaps it. The file stays as long as it was made.
void window_close(void);
