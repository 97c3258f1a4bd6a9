/// Memory for the moment in which dlsym looks for the real functions and may itself call malloc: 64 KiB, never given
/// back. Its blocks are no events, and are recognised for ever where they come back.
#pragma once

#include <stdbool.h>
#include <stddef.h>

/// Zeroed; NULL when the arena is used up.
void* arena_allocate(size_t alignment, size_t size);
bool arena_owns(const void* block);
/// Bytes that were asked for.
size_t arena_size(const void* block);
