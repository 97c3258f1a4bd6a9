/// The code that differs between processors and that both sides of the rings need: it reads the clock of the stamps,
/// and waits. C and C++.
///
/// x86-64: the time stamp counter. A load waits for nothing but the fence; stores are seen in their order, and an
/// atomic operation is a full fence.
///
/// arm64: the system's counter (cntvct_el0), which is the same on all processors. Loads and stores are seen in any
/// order but for acquire, release and fences, and may also pass the counter's read. So the read has a full fence before
/// it, and no later instruction begins before it is done.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#if defined __x86_64__
enum {
  stamp_shift = 4,      // a stamp counts 16 ticks of rdtsc, some 6 ns: 32 bits last half a minute
  stamps_per_us = 200,  // a guess: at 3.2 GHz
  address_bits = 47,    // of a process
  has_sparse_stamps = true,
};

/// `fenced`: not before the instructions in front of it are done. Others may run up to a cache miss later.
static inline uint64_t processor_stamp(bool fenced) {
  if (fenced) __builtin_ia32_lfence();
  return __builtin_ia32_rdtsc() >> stamp_shift;
}

static inline void processor_pause(void) { __builtin_ia32_pause(); }

/// After an atomic operation: others see all that came before it when later instructions run.
static inline void processor_fence_after_atomic(void) { __asm__ volatile("" : : : "memory"); }

#elif defined __aarch64__
enum {
  stamp_shift = 4,                     // of a clock of nanoseconds
  stamps_per_us = 60,                  // a guess: 25 to 100
  address_bits = 48,                   // of a process
  has_sparse_stamps = false,           // what they rely on was thought through for x86-64 alone
  counter_frequency_slow = 160000000,  // ticks of 6 ns
};

/// The counter's ticks are 1 ns, from Armv8.6 on, or 10 to 52 ns: then each is a stamp.
static inline uint64_t processor_stamp(bool fenced) {
  uint64_t ticks, frequency;
  if (fenced)
    __asm__ volatile("dsb ish\n\tisb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
  else
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
  __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
  return frequency > counter_frequency_slow ? ticks >> stamp_shift : ticks;
}

static inline void processor_pause(void) { __asm__ volatile("yield"); }
static inline void processor_fence_after_atomic(void) { __asm__ volatile("dmb ish" : : : "memory"); }

#else
#error "the tracer knows x86-64 and arm64"
#endif
