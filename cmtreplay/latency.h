/* The latencies of single calls. Reading the clock twice costs more than most calls, so runs of their own time one call
 * in 64. The calls are chosen at random: every 64th could always be the same call of a loop. The duration of two
 * readings with nothing between them is measured first, and subtracted. Ticks are the processor's (rdtsc) on x86-64,
 * elsewhere nanoseconds.
 *
 * Latencies are counted in buckets, 32 for each power of two, so that each is known to 3 %. The largest is kept
 * exactly. */
#pragma once

#include <stdint.h>

#include "cmtreplay/protocol.h"

enum latency_kind {
  latency_malloc = 0,
  latency_free = 1,
  latency_calloc = 2,
  latency_realloc = 3,
  latency_aligned = 4,
  latency_kinds = 5
};

enum { latency_octave = 32, latency_buckets = latency_octave * 40, latency_distance = 64 };

/* The latencies of one lane. */
struct latencies {
  uint64_t max[latency_kinds];
  uint32_t counts[latency_kinds][latency_buckets];
  uint64_t random;
  uint32_t countdown;
};

/* The bucket of a number of ticks, and the ticks in the middle of a bucket. */
static inline uint32_t latency_bucket(uint64_t ticks) {
  if (ticks < latency_octave) return (uint32_t)ticks;
  const uint32_t octave = 63U - (uint32_t)__builtin_clzll(ticks) - 5U;
  const uint32_t bucket = latency_octave * (octave + 1) + (uint32_t)((ticks >> octave) & (latency_octave - 1));
  return bucket < latency_buckets ? bucket : latency_buckets - 1;
}

static inline double latency_ticks(uint32_t bucket) {
  if (bucket < latency_octave) return bucket;
  const uint32_t octave = bucket / latency_octave - 1;
  const double width = (double)((uint64_t)1 << octave);
  return (bucket % latency_octave + latency_octave) * width + (width - 1) / 2;
}

static inline uint64_t latency_clock(void) {
#if defined __x86_64__
  uint32_t low, high;
  __asm__ volatile("rdtscp" : "=a"(low), "=d"(high) : : "rcx", "memory");
  return (uint64_t)high << 32 | low;
#else
  return monotonic_ns();
#endif
}

/* Whether to time the next call. */
static inline int latency_chooses(struct latencies* latencies) {
  if (--latencies->countdown != 0) return 0;
  latencies->random = latencies->random * 6364136223846793005U + 1442695040888963407U;
  latencies->countdown = 1 + (uint32_t)(latencies->random >> 33) % (2 * latency_distance - 1);
  return 1;
}

static inline void latency_add(struct latencies* latencies, enum latency_kind kind, uint64_t ticks) {
  ++latencies->counts[kind][latency_bucket(ticks)];
  if (ticks > latencies->max[kind]) latencies->max[kind] = ticks;
}
