/* Calls that give memory back. Programs call glibc's malloc_trim and mallopt, and jemalloc's mallctl. If another
 * library is preloaded into such a program, the calls reach it only if it has functions of these names. They do nothing
 * for it otherwise, and so the replay leaves them out.
 *
 * On request the replay makes the call that the library has for the same purpose, as a program would do that is written
 * for it. So it is always for libraries whose calls have a prefix (man/cmtreplay.1 has the table):
 *
 *     glibc     malloc_trim, mallopt                  tcmalloc  MallocExtension_ReleaseFreeMemory
 *     jemalloc  mallctl                               tbb       scalable_allocation_command
 *     mimalloc  mi_collect                            scudo     mallopt(M_PURGE)
 *
 * mallopt's parameters mean something only to glibc, and names of mallctl only to jemalloc. The exception is the purge
 * of an arena, which does the same as malloc_trim. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "cmtreplay/worker/calls.h"

__attribute__((weak)) int mallctl(const char*, void*, size_t*, void*, size_t);
__attribute__((weak)) void mi_collect(int force);
__attribute__((weak)) void MallocExtension_ReleaseFreeMemory(void);
__attribute__((weak)) int scalable_allocation_command(int command, void*);
__attribute__((weak)) void __scudo_print_stats(void);

typedef int mallctl_call(const char*, void*, size_t*, void*, size_t);
static mallctl_call* jemalloc_mallctl;

static int trim_jemalloc(size_t pad) {
  (void)pad;
  return jemalloc_mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0; /* 4096: MALLCTL_ARENAS_ALL */
}

static int trim_mimalloc(size_t pad) {
  (void)pad;
  mi_collect(1);
  return 1;
}

static int trim_tcmalloc(size_t pad) {
  (void)pad;
  MallocExtension_ReleaseFreeMemory();
  return 1;
}

static int trim_tbb(size_t pad) {
  (void)pad;
  scalable_allocation_command(0, NULL); /* TBBMALLOC_CLEAN_ALL_BUFFERS; returns whether there was something to clean */
  return 1;
}

static int trim_scudo(size_t pad) {
  (void)pad;
  return mallopt(-101, 0); /* M_PURGE */
}

/* glibc returns whether it gave anything back; neither is an error. */
static int trim_glibc(size_t pad) {
  malloc_trim(pad);
  return 1;
}

static struct give_back_calls calls_of_same_name(void) {
  struct give_back_calls calls = {0};
  if (is_of_target((const void*)(uintptr_t)malloc_trim)) calls.malloc_trim = trim_glibc;
  if (is_of_target((const void*)(uintptr_t)mallopt)) calls.mallopt = mallopt;
  if (is_of_target((const void*)(uintptr_t)mallctl)) calls.mallctl = jemalloc_mallctl = mallctl;
  return calls;
}

struct give_back_calls target_give_back_calls(int counterparts) {
  if (!counterparts) return calls_of_same_name();
  struct give_back_calls calls = {.counterparts = 1};
  void* const prefixed = target_function("mallctl");
  memcpy(&jemalloc_mallctl, &prefixed, sizeof prefixed);
  if (!jemalloc_mallctl && is_of_target((const void*)(uintptr_t)mallctl)) jemalloc_mallctl = mallctl;
  calls.mallctl = jemalloc_mallctl;
  if (jemalloc_mallctl)
    calls.malloc_trim = trim_jemalloc;
  else if (is_of_target((const void*)(uintptr_t)mi_collect))
    calls.malloc_trim = trim_mimalloc;
  else if (is_of_target((const void*)(uintptr_t)MallocExtension_ReleaseFreeMemory))
    calls.malloc_trim = trim_tcmalloc;
  else if (scalable_allocation_command) /* malloc itself may be libtbbmalloc_proxy's */
    calls.malloc_trim = trim_tbb;
  else if (is_of_target((const void*)(uintptr_t)__scudo_print_stats))
    calls.malloc_trim = trim_scudo;
  else if (is_of_target((const void*)(uintptr_t)malloc_trim)) {
    calls.malloc_trim = trim_glibc;
    calls.mallopt = mallopt;
  }
  return calls;
}

/* The trace does not have the width of a value. jemalloc refuses all widths but the right one. */
static int set_value(const char* name, uint64_t value) {
  int error = EINVAL;
  for (size_t bytes = 8; bytes != 0 && error == EINVAL; bytes = bytes == 8 ? 4 : bytes == 4 ? 1 : 0)
    error = jemalloc_mallctl(name, NULL, NULL, &value, bytes);
  return error;
}

/* Writes a name with the number of its arena in place of #. */
static void write_name(char* text, const char* name, uint32_t arena) {
  char digits[16];
  int count = 0;
  for (; *name; ++name) {
    if (*name != '#') {
      *text++ = *name;
      continue;
    }
    do digits[count++] = (char)('0' + arena % 10);
    while (arena /= 10);
    while (count > 0) *text++ = digits[--count];
  }
  *text = '\0';
}

static enum give_back_result result_of(int is_done) { return is_done ? give_back_done : give_back_failed; }

enum give_back_result call_give_back(const struct give_back_calls* calls, enum give_back call, const uint64_t* words) {
  char name[64];
  const uint32_t index = (uint32_t)(words[0] & 0xff);
  switch (call) {
    case give_back_trim:
      return calls->malloc_trim ? result_of(calls->malloc_trim(words[0])) : give_back_missing;
    case give_back_mallopt:
      return calls->mallopt ? result_of(calls->mallopt((int)words[0], (int)words[1])) : give_back_missing;
    case give_back_mallctl:
      break;
  }
  if (calls->counterparts && !calls->mallctl && index == mallctl_purge && calls->malloc_trim)
    return result_of(calls->malloc_trim(0));
  if (!calls->mallctl || index >= mallctl_count) return give_back_missing;
  write_name(name, mallctl_names[index], (uint32_t)(words[0] >> 16));
  if (words[0] >> 8 & 1) return result_of(set_value(name, words[1]) == 0);
  return result_of(calls->mallctl(name, NULL, NULL, NULL, 0) == 0);
}
