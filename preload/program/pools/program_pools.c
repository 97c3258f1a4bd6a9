// The functions of cmttrace.h about pools. A thread reports a block after it was made and before it is given back. So
// reports of a block by several threads are in the order of their true stamps, as calls of malloc are.
#include <stddef.h>
#include <string.h>

#include "preload/program/interpose/interpose.h"
#include "preload/program/pools/pool_table.h"
#include "preload/text.h"

EXPORT unsigned cmttrace_pool_create(const char* name);
EXPORT void cmttrace_pool_alloc(unsigned pool, const void* block, size_t size);
EXPORT void cmttrace_pool_realloc(unsigned pool, const void* old, size_t size, const void* block);
EXPORT void cmttrace_pool_free(unsigned pool, const void* block);

unsigned cmttrace_pool_create(const char* name) {
  if (!tracer_is_ready() || !pools_wanted.own || !name || !*name) return 0;
  char text[pool_name_bytes] = {0};
  memcpy(text, name, strnlen(name, sizeof text - 1));
  make_utf8(text, strlen(text));
  const unsigned pool = pool_number(text);
  recording_is_on();  // a forked child's recording begins here: else it might miss the name
  struct Control* const control = recording_generation() == 0 || tracing.is_stopped ? NULL : tracing.control;
  if (control && pool) memcpy(control->pools[pool], text, sizeof text);
  if (control && !pool) __atomic_fetch_add(&control->pools_refused, 1, __ATOMIC_RELAXED);
  if (pool) __atomic_fetch_or(&pools_wanted.pools, (uint64_t)1 << pool, __ATOMIC_RELAXED);
  return pool;
}

static bool is_recorded(unsigned pool) {
  return tracer_is_ready() && pool < pools_max &&
         (__atomic_load_n(&pools_wanted.pools, __ATOMIC_RELAXED) >> pool & 1) && recording_is_on();
}

static uint32_t kind_in(uint32_t kind, unsigned pool) { return kind | pool << slot_alignment_shift; }

// A call, and no jump: the frame, by which a caller that keeps a frame pointer is unwound, has to stay until the stack
// is captured.
#define RECORD(...)           \
  do {                        \
    record_pool(__VA_ARGS__); \
    __asm__ volatile("");     \
  } while (0)

void cmttrace_pool_alloc(unsigned pool, const void* block, size_t size) {
  if (block && is_recorded(pool)) RECORD(kind_in(kind_pool_malloc, pool), block, size, __builtin_frame_address(0));
}

void cmttrace_pool_free(unsigned pool, const void* block) {
  if (block && is_recorded(pool)) RECORD(kind_in(kind_pool_free, pool), block, 0, __builtin_frame_address(0));
}

// A call that returned no block has done nothing, but for one that asked for no bytes.
void cmttrace_pool_realloc(unsigned pool, const void* old, size_t size, const void* block) {
  const void* const frame = __builtin_frame_address(0);
  if ((!block && size) || !is_recorded(pool)) return;
  if (old) RECORD(kind_in(kind_pool_free, pool), old, 0, frame);
  if (block && recording_is_on()) RECORD(kind_in(kind_pool_malloc, pool), block, size, frame);
}
