/// Functions by which a program controls its recording by libcmttrace.so. C and C++.
///
/// This header needs no library: in a program that is not traced the calls do nothing. Any thread may call them, but
/// not inside a signal handler. Compile with -fPIE or -fPIC, as most compilers do by default: in other code the calls
/// do nothing either.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

extern void cmttrace_mark(const char* label) __attribute__((weak));
extern void cmttrace_pause(void) __attribute__((weak));
extern void cmttrace_resume(void) __attribute__((weak));
extern unsigned cmttrace_pool_create(const char* name) __attribute__((weak));
extern void cmttrace_pool_alloc(unsigned pool, const void* block, size_t size) __attribute__((weak));
extern void cmttrace_pool_realloc(unsigned pool, const void* old, size_t size, const void* block) __attribute__((weak));
extern void cmttrace_pool_free(unsigned pool, const void* block) __attribute__((weak));

/// Puts a mark into the trace: cmt_mark("phase 2"). At most 1,024 bytes of UTF-8 are kept.
static inline void cmt_mark(const char* label) {
  if (cmttrace_mark) cmttrace_mark(label);
}

/// Stops recording in all threads until cmt_resume(). The trace has a mark `cmt_pause` and a mark `cmt_resume` where
/// they took effect. The trace does not have the frees during a pause. Such a block ends when its address is returned
/// again, and is counted as a repair. The other blocks keep their tags.
static inline void cmt_pause(void) {
  if (cmttrace_pause) cmttrace_pause();
}

static inline void cmt_resume(void) {
  if (cmttrace_resume) cmttrace_resume();
}

/// A pool is an allocator of the program's own, which cuts larger memory into blocks. The functions below report its
/// blocks, which the trace then has apart from those of malloc:
///
///     static unsigned pool;
///     void* node_alloc(size_t size) {
///       void* node = take_from_free_list(size);
///       cmt_pool_alloc(pool, node, size);
///       return node;
///     }
///     void node_free(void* node) {
///       cmt_pool_free(pool, node);
///       give_to_free_list(node);
///     }
///     int main() { pool = cmt_pool_create("nodes"); ... }
///
/// Returns the number of the pool of that name (at most 63 bytes of UTF-8), or 0 unless pools are recorded
/// (cmttrace --pool=own). There are 61 numbers; a further name gets 0, and cmttrace reports it at the end. A program
/// may call it again, and gets the same number. If "nodes" is a pool, "nodes arenas" is the memory that it has for its
/// blocks.
static inline unsigned cmt_pool_create(const char* name) {
  return cmttrace_pool_create ? cmttrace_pool_create(name) : 0;
}

/// Reports a block of the pool: after it was made, and before another thread can get it. A pool of 0 and a block of
/// NULL are not recorded. In call stacks, the function that calls this is the innermost one.
//
// A jump to the tracer would leave that function out: the empty assembly after the call prevents it.
__attribute__((always_inline)) static inline void cmt_pool_alloc(unsigned pool, const void* block, size_t size) {
  if (pool && cmttrace_pool_alloc) cmttrace_pool_alloc(pool, block, size);
  __asm__ volatile("");
}

/// Reports the end of a block: before the pool may give its memory to another thread.
__attribute__((always_inline)) static inline void cmt_pool_free(unsigned pool, const void* block) {
  if (pool && cmttrace_pool_free) cmttrace_pool_free(pool, block);
  __asm__ volatile("");
}

/// Reports that the block `old` is now `block`, and has `size` bytes. If another thread may have got the memory of
/// `old` already, call cmt_pool_free() before the block is moved, and cmt_pool_alloc() afterwards.
__attribute__((always_inline)) static inline void cmt_pool_realloc(unsigned pool, const void* old, size_t size,
                                                                   const void* block) {
  if (pool && cmttrace_pool_realloc) cmttrace_pool_realloc(pool, old, size, block);
  __asm__ volatile("");
}

#ifdef __cplusplus
}
#endif
