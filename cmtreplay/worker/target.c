/* Looks up the calls of the library under test.
 *
 * Without a prefix they are what the process's own names lead to: libc's, or those of the preloaded library. A library
 * whose names begin with a prefix (scalable_malloc, je_malloc) is preloaded like any other, and its calls are looked up
 * in it by name. Loading it with dlopen alone would do for some libraries; those that keep state of threads in static
 * TLS (jemalloc, scudo) cannot be loaded that way. */
#define _GNU_SOURCE
#include "cmtreplay/worker/calls.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static struct calls process_calls(void) {
  return (struct calls){malloc,         free,     calloc, realloc, reallocarray, aligned_alloc,
                        posix_memalign, memalign, valloc, pvalloc, NULL};
}

_Static_assert(offsetof(struct calls, free_sized) == call_count * sizeof(void*), "as many names as calls");

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

static int same_library(uintptr_t a, uintptr_t b) {
  Dl_info of_a, of_b;
  return a && dladdr((void*)a, &of_a) && dladdr((void*)b, &of_b) && of_a.dli_fbase == of_b.dli_fbase;
}

void* target_function(const char* name) { return prefix ? find(name) : NULL; }

int is_of_target(const void* function) { return same_library((uintptr_t)function, (uintptr_t)target_calls().malloc); }

usable_size_call* target_usable_size(void) {
  const struct calls calls = target_calls();
  static const char* const names[] = {"malloc_usable_size", "usable_size", "msize", "malloc_size"};
  /* Without a prefix only the name that libc has is looked up: a dlsym that fails allocates the text of its error. */
  const int count = prefix ? 4 : 1;
  for (int i = 0; i < count; ++i) {
    void* const found = prefix ? find(names[i]) : dlsym(RTLD_DEFAULT, names[i]);
    usable_size_call* call;
    memcpy(&call, &found, sizeof call);
    if (same_library((uintptr_t)found, (uintptr_t)calls.malloc)) return call;
  }
  return NULL;
}

/* Sized free, under the names that libraries give it. They are weak symbols, which the loader finds or makes NULL:
 * dlsym would allocate the text of an error. The function must be of the same library as malloc, which gets the block
 * back. */

__attribute__((weak)) void free_sized(void*, size_t);
__attribute__((weak)) void sdallocx(void*, size_t, int);
__attribute__((weak)) void mi_free_size_aligned(void*, size_t, size_t);
__attribute__((weak)) void tc_free_sized(void*, size_t);

static void by_free_sized(void* block, size_t size, size_t alignment) {
  if (alignment > 1)
    free(block);
  else
    free_sized(block, size);
}

static void by_sdallocx(void* block, size_t size, size_t alignment) {
  if (block) sdallocx(block, size, alignment > 1 ? __builtin_ctzl(alignment) : 0);
}

static void by_tc_free_sized(void* block, size_t size, size_t alignment) {
  if (alignment > 1)
    free(block);
  else
    tc_free_sized(block, size);
}

sized_free_call* target_sized_free(void) {
  if (same_library((uintptr_t)free_sized, (uintptr_t)malloc)) return by_free_sized;
  if (same_library((uintptr_t)sdallocx, (uintptr_t)malloc)) return by_sdallocx;
  if (same_library((uintptr_t)mi_free_size_aligned, (uintptr_t)malloc)) return mi_free_size_aligned;
  if (same_library((uintptr_t)tc_free_sized, (uintptr_t)malloc)) return by_tc_free_sized;
  return NULL;
}

/* The probe writes a line for each call and for each loaded object to standard output, which is the parent's memfd. */

static void say(const char* word, const char* path) {
  const struct iovec parts[] = {{(char*)word, strlen(word)}, {" ", 1}, {(char*)path, strlen(path)}, {"\n", 1}};
  if (writev(STDOUT_FILENO, parts, 4) < 0) _exit(1);
}

static int say_object(struct dl_phdr_info* object, size_t info_bytes, void* unused) {
  (void)info_bytes;
  (void)unused;
  say("object", object->dlpi_name);
  return 0;
}

int probe(void) {
  const struct calls found = target_calls();
  const void* addresses[call_count];
  memcpy(addresses, &found, sizeof addresses);
  for (int i = 0; i < call_count; ++i) {
    Dl_info info;
    say(call_names[i], addresses[i] && dladdr(addresses[i], &info) ? info.dli_fname : "");
  }
  dl_iterate_phdr(say_object, NULL);
  return 0;
}

/* Asking for settings. A name is one of mallctl (jemalloc) or of a numeric property (tcmalloc). */

__attribute__((weak)) int MallocExtension_GetNumericProperty(const char*, size_t*);
__attribute__((weak)) int mallctl(const char*, void*, size_t*, void*, size_t);

/* jemalloc does not say which of its values of 8 bytes are texts. */
static int is_text(const char* name) {
  static const char* const names[] = {"version", "opt.dss", "opt.metadata_thp", "opt.percpu_arena", "opt.thp"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (strcmp(name, names[i]) == 0) return 1;
  }
  return 0;
}

static void say_number(const char* name, int64_t number) {
  char text[24];
  char* at = text + sizeof text - 1;
  uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
  *at = '\0';
  do *--at = (char)('0' + rest % 10);
  while (rest /= 10);
  if (number < 0) *--at = '-';
  say(name, at);
}

static void say_setting(const char* name) {
  union {
    const char* text;
    int64_t wide;
    uint32_t narrow;
    uint8_t flag;
  } value = {.wide = 0};
  static const size_t widths[] = {8, 4, 1};
  if (mallctl) {
    for (size_t i = 0; i < sizeof widths / sizeof *widths; ++i) {
      size_t width = widths[i];
      if (mallctl(name, &value, &width, NULL, 0) != 0) continue;
      if (is_text(name))
        say(name, value.text);
      else
        say_number(name, width == 8 ? value.wide : width == 4 ? (int64_t)value.narrow : value.flag);
      return;
    }
  }
  size_t number = 0;
  if (MallocExtension_GetNumericProperty && MallocExtension_GetNumericProperty(name, &number))
    say_number(name, (int64_t)number);
}

int ask_settings(char** names) {
  for (; *names; ++names) say_setting(*names);
  return 0;
}
