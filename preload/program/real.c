// Finds the functions of real.h, refuses programs that cannot be recorded, and serves the first calls from the arena.
#include "preload/program/real.h"

#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "preload/program/block_filter.h"
#include "preload/program/kernel.h"
#include "preload/program/launch/restart.h"
#include "preload/text.h"

struct Real real;
Syscall* real_syscall;
void *real_dlopen, *real_dlmopen, *real_dlsym;

bool is_under_valgrind;

enum FindWhere real_order = find_after_us;

void real_die(struct RealFault fault) {
  write_message(fault.what, fault.detail, 0);
  sys(SYS_exit_group, 1);
}

static const struct RealFault fault_of_sanitizer = {"the program is built with a sanitizer, and cannot be traced", ""};

static const struct Wanted required[] = {
#define REAL_WANTED(name) {#name, (void**)&real.name},
    REAL_FUNCTIONS(REAL_WANTED){"syscall", (void**)&real_syscall},
};
static const struct Wanted optional[] = {
    REAL_OPTIONAL_FUNCTIONS(REAL_WANTED){"dlopen", &real_dlopen},
    {"dlmopen", &real_dlmopen},
    {"dlsym", &real_dlsym},
#undef REAL_WANTED
};
enum { required_count = sizeof required / sizeof *required, optional_count = sizeof optional / sizeof *optional };

static struct RealFault find_required(void) {
  if (!real._exit) find_all(required, required_count, real_order);
  for (int i = 0; i < required_count; i++) {
    if (!*required[i].found) return (struct RealFault){"no function behind ours: ", required[i].name};
  }
  return (struct RealFault){NULL, NULL};
}

void real_find_missing(void) { find_all(optional, optional_count, real_order); }

void real_find_required(void) {
  if (real._exit) return;
  if (has_sanitizer()) {
    restart_without_us();
    real_die(fault_of_sanitizer);
  }
  real_find_missing();  // dlopen is among them, which older programs need not have
  const struct RealFault fault = find_required();
  if (fault.what) real_die(fault);
}

static char allocator_file[64];

const char* allocator_name(void) { return allocator_file; }

static void find_allocator_name(void) {
  const char* path = real.malloc ? find_module(*(const void**)&real.malloc) : NULL;
  if (path) strncpy(allocator_file, file_name_of(path), sizeof allocator_file - 1);
}

struct RealFault real_find_all(void) {
  if (has_sanitizer()) return fault_of_sanitizer;
  if (real_order == find_after_us) find_begin();
  is_under_valgrind = find_one("_vgnU_freeres", find_everywhere) != NULL;
  real_find_missing();
  const struct RealFault fault = find_required();
  find_allocator_name();
  return fault;
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
  block_filter_add_always(arena_memory + begin, size);
  return arena_memory + begin;
}

void arena_add_to_filter(void) { block_filter_add_always(arena_memory, arena_used); }

size_t arena_size(const void* block) { return *(const size_t*)((const char*)block - arena_header); }
