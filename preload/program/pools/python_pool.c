// Takes the place of the interpreter's allocators in its tables (python_pool.h).
#include "preload/program/pools/python_pool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "preload/program/frames/frames.h"
#include "preload/program/frames/python.h"
#include "preload/program/record.h"
#include "preload/program/unwind/modules.h"

enum { domain_mem = 1, domain_obj = 2, domains = 3, granule_shift = 18, granules_max = 1 << 16, block_bytes_max = 512 };
enum { hooks_max = 16, wrappers_max = 4, debug_headers_bytes = 32 };

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
  const char* (*name)(void);  // NULL: the interpreter has none, or none that it knows
} calls;

// The context of our functions in one place. It never changes, because a wrapper may put it back at any time.
struct Hook {
  struct Allocator before;  // what ours call
  int domain;
};
static struct Hook hooks[hooks_max];
static int hooks_used;

static struct ArenaAllocator arena_before;
static size_t arena_bytes;  // 0: none was made yet
static bool is_wanted, is_back[domains], has_large_blocks;

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
  const struct Hook* hook;
  bool is_outermost;
};

static void put_back(int domain);

static inline bool is_recorded(int domain) {
  if (__builtin_expect(!is_wanted, 0)) return put_back(domain), false;
  return recording_is_on();
}

// Whether malloc has made the block in this call, and has recorded it. Debug hooks put a header of 16 bytes before each
// block, twice where pymalloc passes the call on.
static inline bool is_of_malloc(const void* block) {
  return thread_self.last_made && (uintptr_t)block - (uintptr_t)thread_self.last_made <= debug_headers_bytes;
}

static inline void record_made(const void* block, size_t size, const void* frame) {
  if (!block || (size > block_bytes_max && !has_large_blocks) || is_of_malloc(block)) return;
  note_pool_block(block);
  record_pool(kind_pool_malloc, block, size, frame);
}

// A wrapper of ours may be wrapped by ours again. Then the outermost call records. An interpreter with a lock of its
// own may read a table while another one changes it: with our function there may be the pool's context.
static const struct Allocator* enter(const void* context, struct PoolCall* call) {
  const bool is_ours = (uintptr_t)context - (uintptr_t)hooks < sizeof hooks;
  call->hook = is_ours ? context : &hooks[0];
  call->is_outermost = !thread_self.is_in_pool;
  thread_self.is_in_pool = true;
  return &call->hook->before;
}
static inline bool leave(const struct PoolCall* call) {
  if (!call->is_outermost) return false;
  thread_self.is_in_pool = false;
  return is_recorded(call->hook->domain);
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
  const bool was_mallocs = thread_self.has_called_realloc && is_of_malloc(block);
  if (old && !was_mallocs && may_be_pool_block(old)) record_pool(kind_pool_free, old, 0, NULL);
  record_made(block, size, __builtin_frame_address(0));
  return block;
}

static void pool_free(void* context, void* block) {
  struct PoolCall call;
  const struct Allocator* const real = enter(context, &call);
  const bool is_known = call.is_outermost && block && may_be_pool_block(block);
  if (is_known && is_recorded(call.hook->domain)) record_pool(kind_pool_free, block, 0, __builtin_frame_address(0));
  real->free(real->context, block);
  if (call.is_outermost) thread_self.is_in_pool = false;
}

enum { arenas = pool_python_arenas << slot_alignment_shift };

// Since 3.11 the interpreter has memory for its frames by the same functions. It asks for an arena inside of a call of
// the pool only, and always for as many bytes. An interpreter that ends gives arenas back outside of such a call.
static void* arena_malloc(void* context, size_t size) {
  void* const arena = arena_before.malloc(context, size);
  if (!arena || !thread_self.is_in_pool) return arena;
  __atomic_store_n(&arena_bytes, size, __ATOMIC_RELAXED);
  if (is_wanted && recording_is_on()) record_pool(kind_pool_malloc | arenas, arena, size, __builtin_frame_address(0));
  return arena;
}

static void arena_free(void* context, void* arena, size_t size) {
  const bool is_arena = thread_self.is_in_pool || size == __atomic_load_n(&arena_bytes, __ATOMIC_RELAXED);
  if (is_arena && is_wanted && recording_is_on())
    record_pool(kind_pool_free | arenas, arena, 0, __builtin_frame_address(0));
  arena_before.free(context, arena, size);
}

static bool is_ours(const struct Allocator* allocator) { return allocator->malloc == pool_malloc; }

// An allocator that the interpreter uses.
struct Place {
  struct Allocator now;
  struct Allocator* inside;  // of a wrapper; NULL: in the interpreter's table
};

// tracemalloc's allocators have the address of a variable as their context: the allocator that they wrap. It returns to
// the table when tracemalloc stops. Other wrappers are not known.
static struct Allocator* wrapped_by(const struct Allocator* wrapper, const struct LoadedModule* python_module) {
  const uintptr_t begin = python_module->begin, bytes = python_module->end - begin, at = (uintptr_t)wrapper->context;
  if (at % sizeof(void*) || at - begin > bytes - sizeof(struct Allocator)) return NULL;
  struct Allocator* const wrapped = wrapper->context;
  if (is_ours(wrapped)) return wrapped;
  const uintptr_t functions[] = {(uintptr_t)wrapped->malloc, (uintptr_t)wrapped->calloc, (uintptr_t)wrapped->realloc,
                                 (uintptr_t)wrapped->free};
  for (size_t i = 0; i < 4; i++)
    if (functions[i] - begin >= bytes || functions[i] == functions[(i + 1) % 4]) return NULL;
  return wrapped;
}

// The place for ours: inside of tracemalloc's wrapper, so that its stop leaves ours.
static void find_place(int domain, struct Place* place) {
  struct LoadedModule python_module;
  calls.get(domain, &place->now);
  place->inside = NULL;
  if (!module_find((uintptr_t)python_symbols.runtime, &python_module)) return;
  for (int i = 0; i < wrappers_max && !is_ours(&place->now); i++) {
    struct Allocator* const wrapped = wrapped_by(&place->now, &python_module);
    if (!wrapped) return;
    place->inside = wrapped;
    place->now = *wrapped;
  }
}

static void change(int domain, const struct Place* place, struct Allocator allocator) {
  if (place->inside)
    *place->inside = allocator;
  else
    calls.set(domain, &allocator);
}

static void put_back(int domain) {
  if (is_back[domain]) return;  // a wrapper keeps ours
  is_back[domain] = true;
  struct Place place;
  find_place(domain, &place);
  if (is_ours(&place.now)) change(domain, &place, ((const struct Hook*)place.now.context)->before);
  struct ArenaAllocator arena;
  calls.get_arena(&arena);
  if (arena.malloc == arena_malloc) calls.set_arena(&arena_before);
}

// The hook of an allocator, which may have had one before. NULL: there are too many.
static struct Hook* hook_of(int domain, const struct Allocator* allocator) {
  for (int i = 0; i < hooks_used; i++)
    if (hooks[i].domain == domain && memcmp(&hooks[i].before, allocator, sizeof *allocator) == 0) return &hooks[i];
  if (hooks_used == hooks_max) return NULL;
  hooks[hooks_used] = (struct Hook){*allocator, domain};
  return &hooks[hooks_used++];
}

static void hook(int domain) {
  struct Place place;
  find_place(domain, &place);
  is_back[domain] = false;
  if (is_ours(&place.now)) return;
  struct Hook* const found = hook_of(domain, &place.now);
  if (found) change(domain, &place, (struct Allocator){found, pool_malloc, pool_calloc, pool_realloc, pool_free});
}

// Wrappers that keep ours call them still. So ours take a place once only, or when they have left it.
static void hook_arenas(void) {
  struct ArenaAllocator now;
  calls.get_arena(&now);
  if (now.malloc == arena_malloc || (arena_before.malloc && now.malloc != arena_before.malloc)) return;
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
  module_symbol(module, &(struct WantedSymbol){"_PyMem_GetCurrentAllocatorName", (void**)&calls.name, NULL});
  return true;
}

// Blocks of mimalloc, which 3.13 and later have, are of any size, and not malloc's. An earlier interpreter that begins
// cannot be asked.
static void hook_all(void) {
  const char* const name = calls.name && python.version >= 0x30d ? calls.name() : NULL;
  if (name) has_large_blocks = strncmp(name, "mimalloc", 8) == 0;
  hook(domain_mem);
  hook(domain_obj);
  hook_arenas();
}

// An interpreter that begins may choose other allocators yet. So it is hooked again when it runs.
static bool look(bool is_locked) {
  if (!calls.is_initialized && !find_calls()) {
    __atomic_store_n(&frames_found, NULL, __ATOMIC_RELEASE);
    return false;
  }
  const bool is_running = calls.is_initialized() != 0;
  if (is_running && !is_locked) return false;
  hook_all();
  if (is_running) __atomic_store_n(&frames_found, NULL, __ATOMIC_RELEASE);
  return true;
}

void python_pool_begin(void) {
  is_wanted = true;
  __atomic_store_n(&frames_found, look, __ATOMIC_RELEASE);
}

void python_pool_end(void) {
  is_wanted = false;
  __atomic_store_n(&frames_found, NULL, __ATOMIC_RELEASE);
}
