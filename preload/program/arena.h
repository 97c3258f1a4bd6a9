/// Memory for the moment in which dlsym looks for the real functions and may itself call malloc: 64 KiB, never given
/// back. Its blocks are no events, and are recognised for ever where they come back.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { arena_bytes = 64 * 1024 };
extern char arena_memory[arena_bytes];

/// Zeroed; NULL when the arena is used up.
void* arena_allocate(size_t alignment, size_t size);
static inline bool arena_owns(const void* block) { return (uintptr_t)block - (uintptr_t)arena_memory < arena_bytes; }
/// Bytes that were asked for.
size_t arena_size(const void* block);
