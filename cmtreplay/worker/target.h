/* The library under test, and the names that it has its calls under. */
#pragma once

#include "cmtreplay/worker/calls.h"

/* From here on calls are PREFIXmalloc and so on of a library that is preloaded. 0 where it is not loaded. */
int use_prefix(const char* prefix, const char* library);

/* What the library under test has; NULL for a call that it lacks under a prefix. Without a prefix what the process's
 * names lead to: libc's, or those of what is preloaded. */
struct calls target_calls(void);

/* What says how many bytes of a block may be used: malloc_usable_size, or what the library calls it. NULL where it has
 * none of its own. */
typedef size_t usable_size_call(void*);
usable_size_call* target_usable_size(void);

/* The library's sized free, or NULL. Alignment 1: none was stated. */
typedef void sized_free_call(void*, size_t size, size_t alignment);
sized_free_call* target_sized_free(void);

/* Prints where malloc and the other calls come from, and which objects are loaded. Returns an exit status. */
int probe(void);
