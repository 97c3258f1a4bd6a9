#include "preload/program/real.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include "preload/program/kernel.h"

struct Real real;
Syscall* real_syscall;
void *real_dlopen, *real_dlmopen;

static void* find(const char* name) { return dlsym(RTLD_NEXT, name); }

static void die(const char* why, const char* detail) {
  write_message(why, detail, 0);
  sys(SYS_exit_group, 1);
}

static void* find_required(const char* name) {
  void* found = find(name);
  if (!found) die("no function behind ours: ", name);
  return found;
}

// A sanitizer's allocator has to come first in the search order: it calls dlsym, and by that us, before it can be
// called itself. The user would see its message only, or a crash at its start.
static bool is_sanitized(void) {
  return dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init") || dlsym(RTLD_DEFAULT, "__msan_init");
}

bool is_under_valgrind;

void real_find_required(void) {
  if (real._exit) return;
  *(void**)&real_syscall = find_required("syscall");
  real_dlopen = find_required("dlopen");
  real_dlmopen = find_required("dlmopen");
#define REAL_REQUIRED(name) *(void**)&real.name = find_required(#name);
  REAL_FUNCTIONS(REAL_REQUIRED)
}

void real_find_all(void) {
  is_under_valgrind = dlsym(RTLD_DEFAULT, "_vgnU_freeres") != NULL;
  if (is_sanitized()) die("the program is built with a sanitizer, and cannot be traced", "");
  real_find_required();
#define REAL_OPTIONAL(name) *(void**)&real.name = find(#name);
  REAL_OPTIONAL_FUNCTIONS(REAL_OPTIONAL)
}

static struct Range { uintptr_t begin, end; } allocator, executable;

static bool is_in(const struct Range* range, const void* code) {
  return (uintptr_t)code >= range->begin && (uintptr_t)code < range->end;
}

static struct Range range_of(const ElfW(Phdr) * headers, size_t count, uintptr_t bias) {
  struct Range range = {UINTPTR_MAX, 0};
  for (size_t i = 0; i < count; i++) {
    if (headers[i].p_type != PT_LOAD) continue;
    const uintptr_t from = bias + headers[i].p_vaddr, to = from + headers[i].p_memsz;
    if (from < range.begin) range.begin = from;
    if (to > range.end) range.end = to;
  }
  return range;
}

static int find_allocator(struct dl_phdr_info* object, size_t bytes, void* unused) {
  (void)bytes;
  (void)unused;
  const struct Range range = range_of(object->dlpi_phdr, object->dlpi_phnum, object->dlpi_addr);
  if (!is_in(&range, *(const void**)&real.malloc)) return 0;
  allocator = range;
  return 1;
}

bool is_allocator_code(const void* code) {
  if (!allocator.begin) dl_iterate_phdr(find_allocator, NULL);
  return is_in(&allocator, code);
}

static void find_executable(void) {
  const ElfW(Phdr)* headers = (const ElfW(Phdr)*)getauxval(AT_PHDR);
  const size_t count = headers ? getauxval(AT_PHNUM) : 0;
  for (size_t i = 0; i < count; i++) {
    if (headers[i].p_type == PT_PHDR) executable = range_of(headers, count, (uintptr_t)headers - headers[i].p_vaddr);
  }
}

bool is_program_code(const void* code) {
  if (!executable.end) find_executable();
  return is_in(&executable, code);
}

_Alignas(4096) char arena_memory[arena_bytes];
static size_t arena_used;

enum { arena_header = 16 };  // before each block: its size

void* arena_allocate(size_t alignment, size_t size) {
  if (alignment < 16) alignment = 16;
  size_t begin = (arena_used + arena_header + alignment - 1) & ~(alignment - 1);
  if (alignment > 4096 || size > sizeof arena_memory || begin + size > sizeof arena_memory) {
    errno = ENOMEM;
    return NULL;
  }
  arena_used = begin + size;
  *(size_t*)(arena_memory + begin - arena_header) = size;
  return arena_memory + begin;
}

size_t arena_size(const void* block) { return *(const size_t*)((const char*)block - arena_header); }
