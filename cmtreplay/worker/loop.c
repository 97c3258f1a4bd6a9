/* The loop that carries out operations. Nearly all events of any trace are one of four calls. These are in the loop,
 * and the others in functions apart, so that the compiler keeps the loop's variables in registers.
 *
 * The variant of a run is a constant at each call of the loop, so the compiler makes six loops. There are three for one
 * lane and three for several: without touching, with touching, and with tests at every operation. The last is for runs
 * whose time does not count.
 *
 * An operation costs 2 to 5 ns (bench/replay_overhead). The loop stores `position` for every operation, which costs
 * some 0.3 ns, so that the parent can name the event at which an allocator crashed. */
#include "cmtreplay/worker/runner.h"
#include "cmtreplay/worker/touch.h"

/* Carrying out operations. */

/* The result of a call. */
struct call_result {
  void* block;
  uint64_t from, size; /* the bytes of the block that are to be touched */
  const uint64_t* next;
};

static inline uint64_t total(uint64_t count, uint64_t size) {
  uint64_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? 0 : bytes;
}

__attribute__((noinline)) static struct call_result call_rarely(const struct calls* calls, enum operation kind,
                                                                void* old, uint64_t size, const uint64_t* at) {
  struct call_result result = {.size = size};
  switch (kind) {
    case operation_realloc_from:
      result.from = *at++;
      result.block = calls->realloc(old, size);
      break;
    case operation_realloc_new:
      result.block = calls->realloc(NULL, size);
      break;
    case operation_reallocarray:
      result.size = total(at[0], size);
      result.from = at[1];
      result.block = calls->reallocarray(old, at[0], size);
      at += 2;
      break;
    case operation_aligned_alloc:
      result.block = calls->aligned_alloc(*at++, size);
      break;
    case operation_posix_memalign:
      if (calls->posix_memalign(&result.block, *at++, size) != 0) result.block = NULL;
      break;
    case operation_memalign:
      result.block = calls->memalign(*at++, size);
      break;
    case operation_valloc:
      result.block = calls->valloc(size);
      break;
    case operation_pvalloc:
      result.block = calls->pvalloc(size);
      break;
    default:
      break;
  }
  result.next = at;
  return result;
}

static const enum latency_kind latency_kind_of[] = {
    [operation_malloc] = latency_malloc,          [operation_free] = latency_free,
    [operation_calloc] = latency_calloc,          [operation_realloc] = latency_realloc,
    [operation_realloc_from] = latency_realloc,   [operation_realloc_new] = latency_realloc,
    [operation_reallocarray] = latency_realloc,   [operation_aligned_alloc] = latency_aligned,
    [operation_posix_memalign] = latency_aligned, [operation_memalign] = latency_aligned,
    [operation_valloc] = latency_aligned,         [operation_pvalloc] = latency_aligned,
    [operation_free_sized] = latency_free,        [operation_free_foreign] = latency_free,
};

/* A variant of the loop. */
struct variant {
  int several; /* lanes: blocks are handed over in slots (schedule.h) */
  int touches; /* pages */
  int tests;   /* at every operation: any `touch`, latencies, returned pointers */
};

static inline uint64_t begin_latency(const struct variant variant, const struct runner* runner) {
  if (!variant.tests || !runner->latencies || !latency_chooses(runner->latencies)) return 0;
  return latency_clock();
}

static inline void end_latency(const struct variant variant, const struct runner* runner, enum operation kind,
                               uint64_t begin) {
  if (variant.tests && begin) latency_add(runner->latencies, latency_kind_of[kind], latency_clock() - begin);
}

static inline void keep_pointer(struct replay* replay, void* block) {
  replay->pointers[__atomic_fetch_add(&replay->control->pointer_next, 1, __ATOMIC_RELAXED)] = block;
}

static inline void* take_block(const struct variant variant, struct runner* runner, void** slot, int foreign) {
  if (!variant.several) return *slot;
  if (!foreign) return schedule_take_own_block(slot);
  return schedule_take_block(&runner->replay->schedule, slot, &runner->lane->waits);
}

static inline void put_block(const struct variant variant, struct runner* runner, void** slot, void* block) {
  if (variant.several)
    schedule_put_block(&runner->replay->schedule, slot, block);
  else
    *slot = block;
}

static inline void touch(const struct variant variant, struct runner* runner, char* block, uint64_t from,
                         uint64_t size) {
  if (variant.tests || (variant.touches && size > runner->touched_at_once_max))
    runner_touch_block(runner, block, from, size);
  else if (variant.touches)
    write_pages(block, from, size);
}

/* Counts a refused call. Returns 1 for a realloc: the old block stays in place, and has another size than later words
 * say. This is noted before another lane may get the block. */
static int refused(const struct variant variant, struct runner* runner, enum operation kind, void** slot) {
  ++runner->lane->refused;
  if (kind != operation_realloc && kind != operation_realloc_from && kind != operation_reallocarray) return 0;
  __atomic_store_n(&runner->replay->resize_refused, 1, __ATOMIC_RELAXED);
  if (variant.several) put_block(variant, runner, slot, runner->held);
  return 1;
}

/* Carries out rare operations that free or take a block, and control words. Returns 0 if the loop ends. */
__attribute__((always_inline)) static inline int carry_out_rare(const struct variant variant, struct runner* runner,
                                                                uint64_t word, void** slot) {
  const enum operation kind = (enum operation)(word & 15);
  if (kind == operation_control) return runner_control(runner, word);
  if (kind == operation_take_block) {
    runner->held = take_block(variant, runner, slot, word >> 32 != 0);
    return 1;
  }
  if (kind == operation_free_foreign) {
    void* const block = take_block(variant, runner, slot, 1);
    const uint64_t begin = begin_latency(variant, runner);
    runner->replay->calls.free(block);
    end_latency(variant, runner, kind, begin);
    return 1;
  }
  uint64_t size = word >> 32;
  if (size == SIZE_IN_NEXT_WORD) size = *runner->at++;
  void* const block = variant.several ? runner->held : *slot;
  const uint64_t begin = begin_latency(variant, runner);
  if (may_be_smaller(runner->replay)) /* an allocator may believe a wrong size */
    runner->replay->calls.free(block);
  else
    runner->replay->calls.free_sized(block, size, (size_t)1 << runner->alignment);
  end_latency(variant, runner, kind, begin);
  runner->alignment = 0;
  return 1;
}

__attribute__((always_inline)) static inline void run_words(struct runner* runner, const struct variant variant) {
  struct replay* const replay = runner->replay;
  struct lane* const lane = runner->lane;
  const struct calls* const calls = &replay->calls;
  void** const slots = replay->slots;
  const uint64_t* at = runner->at;
  const uint64_t* stop = runner->stop;
  uint64_t bias = runner->bias;
  for (;;) {
    while (__builtin_expect(at == stop, 0)) {
      runner->at = at;
      runner_refill(runner);
      at = runner->at;
      stop = runner->stop;
      bias = runner->bias;
    }
    __atomic_store_n(&lane->position, (uint64_t)(uintptr_t)at - bias, __ATOMIC_RELAXED);
    const uint64_t word = *at++;
    const enum operation kind = (enum operation)(word & 15);
    void** const slot = &slots[(uint32_t)word >> 4];
    if (kind == operation_free) {
      void* const block = take_block(variant, runner, slot, 0);
      const uint64_t begin = begin_latency(variant, runner);
      calls->free(block);
      end_latency(variant, runner, kind, begin);
      continue;
    }
    if (__builtin_expect(kind >= operation_free_sized, 0)) {
      runner->at = at;
      if (!carry_out_rare(variant, runner, word, slot)) return;
      at = runner->at;
      stop = runner->stop;
      bias = runner->bias;
      continue;
    }
    uint64_t size = word >> 32;
    uint64_t from = 0;
    void* block;
    if (size == SIZE_IN_NEXT_WORD) size = *at++;
    const uint64_t begin = begin_latency(variant, runner);
    if (kind == operation_malloc) {
      block = calls->malloc(size);
    } else if (kind == operation_calloc) {
      block = calls->calloc(*at, size);
    } else if (kind == operation_realloc) {
      block = calls->realloc(variant.several ? runner->held : *slot, size);
    } else {
      const struct call_result result = call_rarely(calls, kind, variant.several ? runner->held : *slot, size, at);
      block = result.block;
      from = result.from;
      size = result.size;
      at = result.next;
    }
    end_latency(variant, runner, kind, begin);
    if (kind == operation_calloc) size = total(*at++, size);
    if (variant.tests && replay->pointers) keep_pointer(replay, block);
    if (__builtin_expect(!block && size, 0) && refused(variant, runner, kind, slot)) continue;
    touch(variant, runner, block, from, size); /* before another lane may have it */
    put_block(variant, runner, slot, block);
  }
}

/* Makes a loop of its own for each variant. */
#define LOOP(name, ...)                                               \
  __attribute__((noinline)) static void name(struct runner* runner) { \
    run_words(runner, (struct variant){__VA_ARGS__});                 \
  }
LOOP(run_one_untouched, .several = 0)
LOOP(run_one_touching, .touches = 1)
LOOP(run_one_testing, .tests = 1)
LOOP(run_several_untouched, .several = 1)
LOOP(run_several_touching, .several = 1, .touches = 1)
LOOP(run_several_testing, .several = 1, .tests = 1)

static void run_variant(struct runner* runner) {
  const struct replay* const replay = runner->replay;
  const int touch = replay->control->touch;
  const int several = runner->several;
  if (replay->pointers || replay->latencies || (touch != touch_none && touch != touch_pages))
    several ? run_several_testing(runner) : run_one_testing(runner);
  else if (touch == touch_none)
    several ? run_several_untouched(runner) : run_one_untouched(runner);
  else
    several ? run_several_touching(runner) : run_one_touching(runner);
}

/* The first thread begins alone. */
void run_lane(struct runner* runner) {
  const int several = runner->several;
  run_variant(runner);
  if (runner->several != several) run_variant(runner);
}
