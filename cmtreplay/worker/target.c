/* A library whose names begin with a prefix (scalable_malloc, je_malloc) is preloaded like any other, and its calls are
 * looked up in it by name. Loading it with dlopen alone would do for some; those that keep state of threads in static
 * TLS (jemalloc, scudo) cannot be loaded so. */
#define _GNU_SOURCE
#include "target.h"

#include <dlfcn.h>
#include <string.h>

static const char* prefix;
static void* library;

int use_prefix(const char* its_prefix, const char* path) {
  library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  prefix = its_prefix;
  return library != NULL;
}

static void* find(const char* name) {
  char whole[256];
  if (strlen(prefix) + strlen(name) >= sizeof whole) return NULL;
  strcpy(stpcpy(whole, prefix), name);
  return dlsym(library, whole);
}

struct calls target_calls(void) {
  if (!prefix) return process_calls();
  struct calls calls = {0};
  for (int i = 0; i < call_count; ++i) {
    void* const found = find(call_names[i]);
    memcpy((char*)&calls + i * sizeof(void*), &found, sizeof found);
  }
  return calls;
}

static void* same_library(void* found, void* malloc_address) {
  Dl_info its, mallocs;
  if (!found || !dladdr(found, &its) || !dladdr(malloc_address, &mallocs)) return NULL;
  return its.dli_fbase == mallocs.dli_fbase ? found : NULL;
}

usable_size_call* target_usable_size(void) {
  const struct calls calls = target_calls();
  void* malloc_address;
  memcpy(&malloc_address, &calls.malloc, sizeof malloc_address);
  void* found = NULL;
  static const char* const names[] = {"malloc_usable_size", "usable_size", "msize", "malloc_size"};
  /* Without a prefix there is one name, and libc has it: a dlsym that fails asks the allocator for the text of its
   * error.
   */
  const int count = prefix ? 4 : 1;
  for (int i = 0; i < count && !found; ++i)
    found = same_library(prefix ? find(names[i]) : dlsym(RTLD_DEFAULT, names[i]), malloc_address);
  usable_size_call* call;
  memcpy(&call, &found, sizeof call);
  return call;
}
