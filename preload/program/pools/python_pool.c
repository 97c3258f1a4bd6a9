// Takes the place of the interpreter's allocators in its tables (python_pool.h).
#include "preload/program/pools/python_pool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/program/frames/frames.h"
#include "preload/program/frames/python.h"
#include "preload/program/record.h"
#include "preload/program/unwind/modules.h"

enum { domain_mem = 1, domain_obj = 2, domains = 3, granule_shift = 18, granules_max = 1 << 16, block_bytes_max = 512 };

// PyMemAllocatorEx, PyObjectArenaAllocator.
struct Allocator {
  void* context;
  void* (*malloc)(void* context, size_t size);
  void* (*calloc)(void* context, size_t count, size_t size);
  void* (*realloc)(void* context, void* block, size_t size);
  void (*free)(void* context, void* block);
};
struct ArenaAllocator {
  void* context;
  void* (*malloc)(void* context, size_t size);
  void (*free)(void* context, void* arena, size_t size);
};

static struct {
  void (*get)(int domain, struct Allocator* allocator);
  void (*set)(int domain, struct Allocator* allocator);
  void (*get_arena)(struct ArenaAllocator* allocator);
  void (*set_arena)(struct ArenaAllocator* allocator);
  int (*is_initialized)(void);
} calls;

static struct Allocator before[domains];  // what ours call
static struct Allocator first[domains];   // the interpreter's own
static struct ArenaAllocator arena_before;
static bool is_wanted;

// A bit for each piece of memory in which the pool had a block: frees of other blocks are malloc's. Malloc may have
// blocks in such a piece too, whose frees the collector leaves out.
LARGE_VARIABLE static uint64_t granules[granules_max / 64];

static inline uint64_t* granule_of(const void* block, uint64_t* bit) {
  const uint64_t number = (uintptr_t)block >> granule_shift;
  const uint32_t hash = (uint32_t)(number ^ number >> 16) & (granules_max - 1);
  *bit = (uint64_t)1 << hash % 64;
  return &granules[hash / 64];
}
static inline void note_pool_block(const void* block) {
  uint64_t bit, *const word = granule_of(block, &bit);
  if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit)) __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}
static inline bool may_be_pool_block(const void* block) {
  uint64_t bit;
  const uint64_t* const word = granule_of(block, &bit);
  return (__atomic_load_n(word, __ATOMIC_RELAXED) & bit) != 0;
}

// A call of one of our functions.
struct PoolCall {
  int domain;
  bool is_outermost;
};

static void put_back(int domain);

static inline bool is_recorded(int domain) {
  if (__builtin_expect(!is_wanted, 0)) return put_back(domain), false;
  return recording_is_on();
}

static inline void record_made(const void* block, size_t size, const void* frame) {
  if (!block || size > block_bytes_max || thread_self.last_made == block) return;  // malloc's, which has recorded it
  note_pool_block(block);
  record_pool(kind_pool_malloc, block, size, frame);
}

// The allocator that ours calls. Others may wrap ours, and be wrapped by ours in turn: tracemalloc's are set while the
// interpreter begins. A call that comes back goes to the first allocator, and is not recorded again.
static const struct Allocator* enter(const void* context, struct PoolCall* call) {
  call->domain = (int)((const struct Allocator*)context - before);
  call->is_outermost = !thread_self.is_in_pool;
  thread_self.is_in_pool = true;
  return call->is_outermost ? &before[call->domain] : &first[call->domain];
}
static inline bool leave(const struct PoolCall* call) {
  if (!call->is_outermost) return false;
  thread_self.is_in_pool = false;
  return is_recorded(call->domain);
}

static void* pool_malloc(void* context, size_t size) {
  struct PoolCall call;
  const struct Allocator* const real = enter(context, &call);
  if (call.is_outermost) thread_self.last_made = NULL;
  void* const block = real->malloc(real->context, size);
  if (leave(&call)) record_made(block, size, __builtin_frame_address(0));
  return block;
}

static void* pool_calloc(void* context, size_t count, size_t size) {
  struct PoolCall call;
  const struct Allocator* const real = enter(context, &call);
  if (call.is_outermost) thread_self.last_made = NULL;
  void* const block = real->calloc(real->context, count, size);
  if (leave(&call)) record_made(block, count * size, __builtin_frame_address(0));
  return block;
}

static void* pool_realloc(void* context, void* old, size_t size) {
  struct PoolCall call;
  const struct Allocator* const real = enter(context, &call);
  if (call.is_outermost) {
    thread_self.last_made = NULL;
    thread_self.has_called_realloc = false;
  }
  void* const block = real->realloc(real->context, old, size);
  if (!leave(&call) || !block) return block;
  // Then pymalloc has passed the old block to malloc's realloc, which has returned this one. A realloc of pymalloc's
  // own data returns another block.
  const bool was_mallocs = thread_self.has_called_realloc && thread_self.last_made == block;
  if (old && !was_mallocs && may_be_pool_block(old)) record_pool(kind_pool_free, old, 0, NULL);
  record_made(block, size, __builtin_frame_address(0));
  return block;
}

static void pool_free(void* context, void* block) {
  struct PoolCall call;
  const struct Allocator* const real = enter(context, &call);
  const bool is_known = call.is_outermost && block && may_be_pool_block(block);
  if (is_known && is_recorded(call.domain)) record_pool(kind_pool_free, block, 0, __builtin_frame_address(0));
  real->free(real->context, block);
  if (call.is_outermost) thread_self.is_in_pool = false;
}

enum { arenas = pool_python_arenas << slot_alignment_shift };

static void* arena_malloc(void* context, size_t size) {
  void* const arena = arena_before.malloc(context, size);
  if (arena && is_wanted && recording_is_on())
    record_pool(kind_pool_malloc | arenas, arena, size, __builtin_frame_address(0));
  return arena;
}

static void arena_free(void* context, void* arena, size_t size) {
  if (is_wanted && recording_is_on()) record_pool(kind_pool_free | arenas, arena, 0, __builtin_frame_address(0));
  arena_before.free(context, arena, size);
}

static bool is_ours(const struct Allocator* allocator) { return allocator->malloc == pool_malloc; }

static void put_back(int domain) {
  struct Allocator now;
  calls.get(domain, &now);
  if (is_ours(&now)) calls.set(domain, &before[domain]);
  struct ArenaAllocator arena;
  calls.get_arena(&arena);
  if (arena.malloc == arena_malloc) calls.set_arena(&arena_before);
}

static void hook(int domain) {
  struct Allocator now;
  calls.get(domain, &now);
  if (is_ours(&now)) return;
  before[domain] = now;
  if (!first[domain].malloc) first[domain] = now;
  struct Allocator ours = {&before[domain], pool_malloc, pool_calloc, pool_realloc, pool_free};
  calls.set(domain, &ours);
}

static void hook_arenas(void) {
  struct ArenaAllocator now;
  calls.get_arena(&now);
  if (now.malloc == arena_malloc) return;
  arena_before = now;
  now.malloc = arena_malloc;
  now.free = arena_free;
  calls.set_arena(&now);
}

static bool find_calls(void) {
  const uintptr_t module = (uintptr_t)python_symbols.runtime;
  const struct WantedSymbol wanted[] = {
      {"PyMem_GetAllocator", (void**)&calls.get, NULL},
      {"PyMem_SetAllocator", (void**)&calls.set, NULL},
      {"PyObject_GetArenaAllocator", (void**)&calls.get_arena, NULL},
      {"PyObject_SetArenaAllocator", (void**)&calls.set_arena, NULL},
      {"Py_IsInitialized", (void**)&calls.is_initialized, NULL},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    module_symbol(module, &wanted[i]);
    if (!*wanted[i].found) return false;
  }
  return true;
}

static void hook_all(void) {
  hook(domain_mem);
  hook(domain_obj);
  hook_arenas();
}

// An interpreter that begins may choose other allocators yet. So it is hooked again when it runs.
static void look(bool is_locked) {
  if (!calls.is_initialized && !find_calls()) {
    __atomic_store_n(&frames_found, NULL, __ATOMIC_RELEASE);
    return;
  }
  const bool is_running = calls.is_initialized() != 0;
  if (is_running && !is_locked) return;
  hook_all();
  if (is_running) __atomic_store_n(&frames_found, NULL, __ATOMIC_RELEASE);
}

void python_pool_begin(void) {
  is_wanted = true;
  __atomic_store_n(&frames_found, look, __ATOMIC_RELEASE);
}

void python_pool_end(void) {
  is_wanted = false;
  __atomic_store_n(&frames_found, NULL, __ATOMIC_RELEASE);
}
