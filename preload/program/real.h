/// The next functions after ours, in the loader's search order: another preloaded allocator's come before libc's. And
/// the arena that serves malloc while they are looked for.
#pragma once

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/program/hooks/find.h"
#include "preload/program/kernel.h"

// Not declared by every libc, or not with NDEBUG.
void free_sized(void* block, size_t size);
void free_aligned_sized(void* block, size_t alignment, size_t size);
int mallctl(const char* name, void* old, size_t* old_bytes, void* value, size_t bytes);
int mallctlbymib(const size_t* numbers, size_t depth, void* old, size_t* old_bytes, void* value, size_t bytes);
int mallctlnametomib(const char* name, size_t* numbers, size_t* depth);
void __assert_fail(const char* assertion, const char* file, unsigned line, const char* function)
    __attribute__((noreturn));

// clang-format off
#define REAL_FUNCTIONS(X) \
  X(malloc) X(calloc) X(realloc) X(free) \
  X(quick_exit) X(abort) X(__assert_fail) X(_exit) \
  X(execve) X(execv) X(execvp) X(execvpe) X(fexecve) \
  X(wait) X(waitpid) X(wait3) X(wait4) X(waitid) \
  X(setns) X(unshare) X(prctl)
/// NULL where there is none: the library is older, or one of C alone, or is not loaded.
#define REAL_OPTIONAL_FUNCTIONS(X) \
  X(reallocarray) X(aligned_alloc) X(memalign) X(posix_memalign) X(valloc) X(pvalloc) X(malloc_usable_size) \
  X(free_sized) X(free_aligned_sized) \
  X(execveat) X(posix_spawn) X(posix_spawnp) X(system) X(popen) X(pthread_setname_np) \
  X(madvise) X(malloc_trim) X(mallopt) X(mallctl) X(mallctlbymib) X(mallctlnametomib)
// clang-format on

struct Real {
#define REAL_MEMBER(name) __typeof__(&name) name;
  REAL_FUNCTIONS(REAL_MEMBER)
  REAL_OPTIONAL_FUNCTIONS(REAL_MEMBER)
#undef REAL_MEMBER
};
extern struct Real real HIDDEN;
extern void* real_dlopen HIDDEN;
extern void* real_dlmopen HIDDEN;
extern void* real_dlsym HIDDEN;
typedef long Syscall(long, long, long, long, long, long, long);
extern Syscall* real_syscall HIDDEN;

/// Why the program cannot be recorded: what is so, and a name that belongs to it. `what` is NULL: it can be.
struct RealFault {
  const char* what;
  const char* detail;
};

/// Finds them all: after a fork in a program with threads, the loader may make us wait for ever. A fault: one is
/// missing that every libc has, or the program is built with a sanitizer.
struct RealFault real_find_all(void);
/// Finds those that every libc has: an allocator before us calls syscall while it starts. Ends the process with a line
/// where one is missing.
void real_find_required(void);
/// Looks once more for those of REAL_OPTIONAL_FUNCTIONS that were not there.
void real_find_missing(void);
/// Ends the process with a line.
void real_die(struct RealFault fault);
/// Where the real functions are. find_everywhere: the tracer is attached, and not in the program's search order.
extern enum FindWhere real_order;

/// Whether valgrind runs the program: it ends one that calls clone as the collector's start does.
extern bool is_under_valgrind HIDDEN;

/// The file name of the library of the real malloc; empty: the program itself. Found once: looking for it in a forked
/// child might wait for the loader for ever.
const char* allocator_name(void);

/// Whether code belongs to the library of the real malloc.
bool is_allocator_code(const void* code);

/// Whether code belongs to the program itself, and to no library.
bool is_program_code(const void* code);

/// Serves the calls of malloc that are made while the real functions are looked for: 64 KiB, never given back. The
/// blocks are no events, and are recognised wherever they come back.
enum { arena_bytes = 64 * 1024 };
extern char arena_memory[arena_bytes] HIDDEN;

/// Zeroed; NULL with ENOMEM when the arena is used up.
void* arena_allocate(size_t alignment, size_t size);
/// Adds all of its blocks to the filter of the sampler (block_filter.h), to which later ones are added anyway.
void arena_add_to_filter(void);
/// The size that was asked for.
size_t arena_size(const void* block);
static inline bool arena_owns(const void* block) { return (uintptr_t)block - (uintptr_t)arena_memory < arena_bytes; }
