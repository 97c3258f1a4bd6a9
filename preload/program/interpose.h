/// What interpose.c and interpose_new.c share.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/// malloc and aligned_alloc called from inside one of our functions: nothing to record, unless it is operator new that
/// calls, and there is no memory. What the tracer itself asks for is in the arena: its blocks are not the program's.
/// `caller`: the address that it returns to.
void* malloc_inside(size_t size, const void* caller);
void* aligned_inside(size_t alignment, size_t size, const void* caller);

/// After operator new's malloc has failed and a new_handler has made room, operator new calls malloc again, from the
/// same place: then this records the operator new. False where it is another call.
bool malloc_was_retried(void* block, const void* caller);
