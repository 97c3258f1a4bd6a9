// The sampled variants of malloc(3)'s functions, and the parts that seldom run.
//
// A sample's event is recorded as in the other variants. Its guard is not needed: what a real function calls inside has
// been counted there (sampling/sampler.h).
#include "preload/program/interpose/sampled.h"

#include <errno.h>
#include <string.h>

#include "preload/program/sampling/probes.h"

bool sampled_is_own_use;

__attribute__((noinline)) void sampled_block_seldom(const struct Call* call, const void* stack_frame) {
  const int saved = errno;
  const uint64_t bytes = call_bytes(call);
  struct TakenSample found;
  // An inner call has recorded it, and has left the same distance as before by chance.
  const bool is_counted = call->address && block_filter_has(call->address) && sampler_find(call->address, &found);
  if (is_counted)
    thread_self.left += bytes;
  else if (sampler_draw(bytes, stack_frame) && call->address)
    sampler_add(call, stack_frame);
  errno = saved;
}

__attribute__((noinline)) bool sampled_end_seldom(const struct Call* call, bool calls_free, const void* stack_frame,
                                                  const void* caller) {
  struct TakenSample sample;
  if (arena_owns(call->address)) return false;
  const int saved = errno;
  const bool has_stacks = tracer_state == tracer_ready_with_stacks && recording_generation() != 0;
  if (has_stacks) unwind_before_free(call->address, caller);
  const bool is_inner_calls = calls_free && (!sampler_find(call->address, &sample) || !sample.is_of_operator);
  if (call->address && !is_inner_calls && sampler_take(call->address, &sample)) {
    if (recording_is_on()) record_long(call, stack_frame);
    probe_free(call->address);
  }
  errno = saved;
  return true;
}

// An allocator whose malloc calls another interposed function, which counts the block: then malloc must not.
static void* malloc_counted_inside(size_t size) {
  const uint64_t before = thread_self.left;
  void* block = real.malloc(size);
  SAMPLED_BLOCK(before, size, .kind = kind_malloc, .address = block, .size = size);
  return block;
}

// The countdown has passed a point.
static __attribute__((noinline)) void* malloc_seldom(size_t size) {
  if (sampled_is_own_use) {
    thread_self.left += size;
    return arena_allocate(16, size);
  }
  const bool is_sample = sampler_draw(size, __builtin_frame_address(0));
  const uint64_t before = thread_self.left;
  void* block = real.malloc(size);
  if (thread_self.left != before) {  // by the inner call, or else by a signal handler
    AnyFunction* own = (AnyFunction*)malloc_sampled;
    __atomic_compare_exchange_n(&malloc_chosen, &own, (AnyFunction*)malloc_counted_inside, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    if (block_filter_has(block)) return block;  // perhaps the inner call has recorded it
  }
  const int saved = errno;
  if (is_sample && block)
    sampler_add(&(struct Call){.kind = kind_malloc, .address = block, .size = size}, __builtin_frame_address(0));
  errno = saved;
  return block;
}

void* malloc_sampled(size_t size) {
  if (sampler_counts_down(size)) return malloc_seldom(size);
  return real.malloc(size);
}

void* calloc_sampled(size_t count, size_t size) {
  const uint64_t before = thread_self.left;
  void* block = real.calloc(count, size);
  SAMPLED_BLOCK(before, count * size, .kind = kind_calloc, .address = block, .size = size, .has_count = true,
                .count = count);
  return block;
}

// A function that this libc may lack.
#define SAMPLED_ALIGNED(name, parameters, arguments, alignment_of_call)                                               \
  void* name##_sampled parameters {                                                                                   \
    if (!real.name) return errno = ENOMEM, NULL;                                                                      \
    const uint64_t before = thread_self.left;                                                                         \
    void* block = real.name arguments;                                                                                \
    SAMPLED_BLOCK(before, size, .kind = kind_##name, .address = block, .size = size, .alignment = alignment_of_call); \
    return block;                                                                                                     \
  }
SAMPLED_ALIGNED(aligned_alloc, (size_t alignment, size_t size), (alignment, size), alignment)
SAMPLED_ALIGNED(memalign, (size_t alignment, size_t size), (alignment, size), alignment)
SAMPLED_ALIGNED(valloc, (size_t size), (size), 0)
SAMPLED_ALIGNED(pvalloc, (size_t size), (size), 0)

int posix_memalign_sampled(void** result, size_t alignment, size_t size) {
  if (!real.posix_memalign) return ENOMEM;
  const uint64_t before = thread_self.left;
  const int status = real.posix_memalign(result, alignment, size);
  SAMPLED_BLOCK(before, size, .kind = kind_posix_memalign, .address = status ? NULL : *result, .size = size,
                .alignment = alignment);
  return status;
}

static void* move_from_arena(const void* block, size_t size) {
  void* moved = malloc_sampled(size);
  const size_t old = arena_size(block);
  if (moved) memcpy(moved, block, old < size ? old : size);
  return moved;
}

// A sample may be given to it. Its begin is recorded before the real function: another thread may get the old block's
// address inside.
static __attribute__((noinline)) void* realloc_seldom(void* block, size_t size) {
  const void* const stack_frame = __builtin_frame_address(0);
  struct TakenSample sample;
  if (arena_owns(block)) return move_from_arena(block, size);
  int saved = errno;
  const bool was_sample = block && sampler_take(block, &sample);
  if (was_sample && recording_is_on()) record(record_realloc_begin, block, 0, NULL);
  errno = saved;
  const uint64_t before = thread_self.left;
  void* result = real.realloc(block, size);
  saved = errno;
  const bool is_refused = !result && size != 0;
  const bool is_sample =
      thread_self.left == before && sampler_counts_down(size) && sampler_draw(size, stack_frame) && result;
  struct Call call = {
      .kind = kind_realloc, .flags = was_sample ? slot_has_old_block : 0, .address = result, .size = size};
  if (!(is_sample && sampler_add(&call, stack_frame)) && was_sample) {
    // The block lives on, or no sample follows it.
    if (!is_refused) call.address = NULL, call.size = 0;
    if (recording_is_on()) record_long(&call, stack_frame);
    if (is_refused && !sampler_put_back(block, &sample) && recording_is_on()) record(kind_unsample, block, 0, NULL);
  }
  if (was_sample && !is_refused) probe_free(block);
  errno = saved;
  return result;
}

void* realloc_sampled(void* block, size_t size) {
  if (__builtin_expect(block_filter_has(block), 0)) return realloc_seldom(block, size);
  const uint64_t before = thread_self.left;
  void* result = real.realloc(block, size);
  SAMPLED_BLOCK(before, size, .kind = kind_realloc, .address = result, .size = size);
  return result;
}

void* reallocarray_sampled(void* block, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return errno = ENOMEM, NULL;
  return realloc_sampled(block, bytes);
}

#define FREE_BY(function, ...) ((function) ? (function)(__VA_ARGS__) : real.free(block))

SAMPLED_FREE(free, (void* block), (block), false, real.free(block), .kind = kind_free)
SAMPLED_FREE(free_sized, (void* block, size_t size), (block, size), false, FREE_BY(real.free_sized, block, size),
             .kind = kind_free_sized, .size = size)
SAMPLED_FREE(free_aligned_sized, (void* block, size_t alignment, size_t size), (block, alignment, size), false,
             FREE_BY(real.free_aligned_sized, block, alignment, size), .kind = kind_free_aligned_sized, .size = size,
             .alignment = alignment)
