/// The sampled variants of the interposed functions: what those of C and C++ share. See sampling/sampler.h.
#pragma once

#include "preload/program/block_filter.h"
#include "preload/program/interpose/interpose.h"
#include "preload/program/sampling/sampler.h"

/// After a real function: the countdown has passed a point. Records the block if it is a sample.
void sampled_block_seldom(const struct Call* call, const void* stack_frame);

/// After a real function has returned the block of `call`, which is a compound literal: counts it, unless an interposed
/// function has done so inside. `before`: `thread_self.left` before the real function.
#define SAMPLED_BLOCK(before, bytes, ...)                                                \
  do {                                                                                   \
    if (__builtin_expect(thread_self.left == (before), 1) && sampler_counts_down(bytes)) \
      sampled_block_seldom(&(struct Call){__VA_ARGS__}, __builtin_frame_address(0));     \
  } while (0)

/// Before a block is freed that the filter has found: records the end if it is a sample. Returns whether the real
/// function is to be called: not for a block of the arena. `caller`: of the interposed function. `calls_free`: the real
/// function calls the interposed free, which ends the block of a malloc.
bool sampled_end_seldom(const struct Call* call, bool calls_free, const void* stack_frame, const void* caller);

/// Defines the sampled variant of a function that frees `block`. Nearly always it jumps to the real one.
#define SAMPLED_FREE(name, parameters, arguments, calls_free, real_call, ...)                                     \
  static __attribute__((noinline)) void name##_seldom parameters {                                                \
    if (sampled_end_seldom(&(struct Call){.address = block, __VA_ARGS__}, calls_free, __builtin_frame_address(0), \
                           __builtin_return_address(0)))                                                          \
      real_call;                                                                                                  \
  }                                                                                                               \
  void name##_sampled parameters {                                                                                \
    if (__builtin_expect(block_filter_has(block), 0))                                                             \
      name##_seldom arguments;                                                                                    \
    else                                                                                                          \
      real_call;                                                                                                  \
  }

/// Set while the tracer itself calls malloc: its blocks are not the program's.
extern bool sampled_is_own_use HIDDEN;
