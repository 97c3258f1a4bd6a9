#include "preload/program/real.h"

#include <dlfcn.h>
#include <link.h>

#include "preload/program/kernel.h"

struct Real real;
Syscall* real_syscall;

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

void real_find_all(void) {
  if (is_sanitized()) die("the program is built with a sanitizer, and cannot be traced", "");
  *(void**)&real_syscall = find_required("syscall");
#define REAL_REQUIRED(name) *(void**)&real.name = find_required(#name);
  REAL_FUNCTIONS(REAL_REQUIRED)
#define REAL_OPTIONAL(name) *(void**)&real.name = find(#name);
  REAL_OPTIONAL_FUNCTIONS(REAL_OPTIONAL)
}

static struct { uintptr_t begin, end; } allocator;

static int find_allocator(struct dl_phdr_info* object, size_t bytes, void* unused) {
  (void)bytes;
  (void)unused;
  const uintptr_t wanted = (uintptr_t)real.malloc;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    if (object->dlpi_phdr[i].p_type != PT_LOAD) continue;
    const uintptr_t from = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr, to = from + object->dlpi_phdr[i].p_memsz;
    if (from < begin) begin = from;
    if (to > end) end = to;
  }
  if (wanted < begin || wanted >= end) return 0;
  allocator.end = end;
  allocator.begin = begin;
  return 1;
}

bool is_allocator_code(const void* code) {
  if (!allocator.begin) dl_iterate_phdr(find_allocator, NULL);
  return (uintptr_t)code >= allocator.begin && (uintptr_t)code < allocator.end;
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
