/* The library under test, and the names of its calls. */
#pragma once

#include "cmtreplay/worker/calls.h"

/* The calls are from now on PREFIXmalloc and so on of a preloaded library. Returns 0 where it is not loaded. */
int use_prefix(const char* prefix, const char* library);

/* The calls of the library under test; NULL for one that it lacks under a prefix. Without a prefix they are the
 * process's: those of the preloaded library, or libc's. */
struct calls target_calls(void);

/* malloc_usable_size, or the library's name for it; NULL where it has none of its own. */
typedef size_t usable_size_call(void*);
usable_size_call* target_usable_size(void);

/* The library's sized free, or NULL. Alignment 1: none was stated. */
typedef void sized_free_call(void*, size_t size, size_t alignment);
sized_free_call* target_sized_free(void);

/* Prints where malloc and the other calls come from, and which objects are loaded. Returns an exit status. */
int probe(void);
