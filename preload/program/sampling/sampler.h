/// The sampler: which blocks are samples (format-spec/cmt.md, "Sampled traces"), and their events.
///
/// Each thread counts down the bytes that it asks for. `thread_self.left` is the distance to the next point of its
/// Poisson process. If a block has the point, its call goes on in a slow function of interpose/sampled.c. Otherwise a
/// malloc costs four instructions more than the allocator's own, and nothing asks whether the process is recorded.
///
/// A real function may call interposed ones in turn: aligned_alloc calls memalign, operator new calls malloc. A block
/// must be counted once. So all functions but malloc compare `left` before and after. If it has changed, the inner call
/// has counted the block, and has recorded it if it is a sample.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/program/kernel.h"
#include "preload/program/record.h"
#include "preload/program/sampling/live_samples.h"
#include "preload/program/thread.h"

/// In a recording that begins, by its setting. 0: all blocks are recorded. Returns why not, or NULL. In an attached
/// process the threads' countdowns go on from the last recording, so that the interval has to be the same.
const char* sampler_begin(uint64_t interval);
/// The sampling interval now, in bytes; 0: all blocks are recorded.
uint64_t sampler_interval(void);

/// In a process that begins: it has no samples. Also while it is paused.
void sampler_begin_process(void);
/// In the child's thread that has forked: its points are its own.
void sampler_after_fork(void);

/// Counts down the bytes of a block. Returns true if the block has a point.
static inline bool sampler_counts_down(uint64_t bytes) {
#ifdef __x86_64__
  bool has_passed;  // one instruction, of which the compiler would make three
  __asm__("subq %2, %0" : "+m"(thread_self.left), "=@ccb"(has_passed) : "r"(bytes));
#else
  const bool has_passed = __builtin_sub_overflow(thread_self.left, bytes, &thread_self.left);
#endif
  return __builtin_expect(has_passed, 0);
}

/// After a countdown that has passed the point of a thread: draws the distance to the next one. Returns whether the
/// block is a sample. False: the thread had no point yet, or nothing is recorded. `frame`: of the function.
bool sampler_draw(uint64_t bytes, const void* frame);

/// Records a block that is a sample. `stack_frame`: __builtin_frame_address(0) of the interposed function. Returns
/// false if the block is none: the interval has risen meanwhile, or there was no room.
bool sampler_add(const struct Call* call, const void* stack_frame);

/// Whether a block is a sample, and which one.
bool sampler_find(const void* block, struct TakenSample* sample);
/// Takes a sample out, before its block is freed. Returns whether its end is to be recorded.
bool sampler_take(const void* block, struct TakenSample* sample);
/// Puts it back: the realloc has failed. Returns false if there is no room.
bool sampler_put_back(const void* block, const struct TakenSample* sample);
