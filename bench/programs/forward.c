// A library to preload that only forwards each call: the cost of any preloaded library.
#include <dlfcn.h>
#include <stdlib.h>

static void* (*next_malloc)(size_t);
static void (*next_free)(void*);
static void* (*next_realloc)(void*, size_t);

__attribute__((constructor)) static void find(void) {
  *(void**)&next_free = dlsym(RTLD_NEXT, "free");
  *(void**)&next_realloc = dlsym(RTLD_NEXT, "realloc");
  *(void**)&next_malloc = dlsym(RTLD_NEXT, "malloc");
}

extern void* __libc_malloc(size_t);
extern void __libc_free(void*);
extern void* __libc_realloc(void*, size_t);

void* malloc(size_t size) { return next_malloc ? next_malloc(size) : __libc_malloc(size); }
void free(void* block) { next_free ? next_free(block) : __libc_free(block); }
void* realloc(void* block, size_t size) {
  return next_realloc ? next_realloc(block, size) : __libc_realloc(block, size);
}
