// The functions of cmttrace.h about pools.
#include "preload/program/pools/program_pools.h"

#include <stddef.h>
#include <string.h>

#include "preload/program/interpose/interpose.h"
#include "preload/text.h"

EXPORT unsigned cmttrace_pool_create(const char* name);
EXPORT void cmttrace_pool_alloc(unsigned pool, const void* block, size_t size);
EXPORT void cmttrace_pool_realloc(unsigned pool, const void* old, size_t size, const void* block);
EXPORT void cmttrace_pool_free(unsigned pool, const void* block);

static bool are_own_wanted;
static uint64_t wanted;  // a bit for each pool

// A pool gets its number with its key. All threads that ask for it write the same name, so nobody waits for another
// one, which a fork may have lost.
LARGE_VARIABLE static struct {
  uint64_t key;
  char name[pool_name_bytes];
} pools[pools_max];

void program_pools_begin(bool own, bool heaptrack) {
  are_own_wanted = own;
  if (heaptrack) wanted |= 1 << pool_heaptrack;
}

void program_pools_name(struct Control* control) {
  if (!are_own_wanted) return;  // the table's page is not looked at
  for (unsigned pool = pools_known; pool < pools_max && pools[pool].key; pool++)
    memcpy(control->pools[pool], pools[pool].name, pool_name_bytes);
}

static uint64_t key_of(const char* name) {  // FNV-1a
  uint64_t key = 0xcbf29ce484222325;
  for (; *name; name++) key = (key ^ (unsigned char)*name) * 0x100000001b3;
  return key | 1;
}

// 0: all numbers are taken.
static unsigned number_of(const char name[pool_name_bytes]) {
  const uint64_t key = key_of(name);
  for (unsigned pool = pools_known; pool < pools_max; pool++) {
    uint64_t before = 0;
    if (!__atomic_compare_exchange_n(&pools[pool].key, &before, key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
        before != key)
      continue;
    memcpy(pools[pool].name, name, pool_name_bytes);
    return pool;
  }
  return 0;
}

unsigned cmttrace_pool_create(const char* name) {
  if (!tracer_is_ready() || !are_own_wanted || !name || !*name) return 0;
  char text[pool_name_bytes] = {0};
  memcpy(text, name, strnlen(name, sizeof text - 1));
  make_utf8(text, strlen(text));
  const unsigned pool = number_of(text);
  recording_is_on();  // a forked child's recording begins here: else it might miss the name
  struct Control* const control = recording_generation() == 0 || tracing.is_stopped ? NULL : tracing.control;
  if (control && pool) memcpy(control->pools[pool], text, sizeof text);
  if (control && !pool) __atomic_fetch_add(&control->pools_refused, 1, __ATOMIC_RELAXED);
  if (pool) __atomic_fetch_or(&wanted, (uint64_t)1 << pool, __ATOMIC_RELAXED);
  return pool;
}

static bool is_recorded(unsigned pool) {
  return tracer_is_ready() && pool < pools_max && (__atomic_load_n(&wanted, __ATOMIC_RELAXED) >> pool & 1) &&
         recording_is_on();
}

static uint32_t kind_in(uint32_t kind, unsigned pool) { return kind | pool << slot_alignment_shift; }

void cmttrace_pool_alloc(unsigned pool, const void* block, size_t size) {
  if (block && is_recorded(pool)) record_pool(kind_in(kind_pool_malloc, pool), block, size, __builtin_frame_address(0));
}

void cmttrace_pool_free(unsigned pool, const void* block) {
  if (block && is_recorded(pool)) record_pool(kind_in(kind_pool_free, pool), block, 0, __builtin_frame_address(0));
}

// A call that returned no block has done nothing, but for one that asked for no bytes.
void cmttrace_pool_realloc(unsigned pool, const void* old, size_t size, const void* block) {
  const void* const frame = __builtin_frame_address(0);
  if ((!block && size) || !is_recorded(pool)) return;
  if (old) record_pool(kind_in(kind_pool_free, pool), old, 0, frame);
  if (block && recording_is_on()) record_pool(kind_in(kind_pool_malloc, pool), block, size, frame);
}
