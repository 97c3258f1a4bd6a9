// libcmttrace-pools.so: the functions by which programs report blocks of their own pools to heaptrack. Programs look
// for them in three ways: by weak references, by dlsym(RTLD_NEXT), and by dlopen("libheaptrack_preload.so"), which is
// this library's name. It hands all calls to libcmttrace.so, and does nothing without it. No library is linked to it,
// so that programs of any C library can start with it.
//
// Each function jumps on, so that the caller in a call stack is the program's.
#include <stddef.h>

#include "preload/cmttrace.h"
#include "preload/protocol.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void heaptrack_malloc(void* block, size_t size);
EXPORT void heaptrack_realloc(void* old, size_t size, void* block);
EXPORT void heaptrack_free(void* block);

void heaptrack_malloc(void* block, size_t size) {
  if (cmttrace_pool_alloc) cmttrace_pool_alloc(pool_heaptrack, block, size);
}

void heaptrack_realloc(void* old, size_t size, void* block) {
  if (cmttrace_pool_realloc) cmttrace_pool_realloc(pool_heaptrack, old, size, block);
}

void heaptrack_free(void* block) {
  if (cmttrace_pool_free) cmttrace_pool_free(pool_heaptrack, block);
}
