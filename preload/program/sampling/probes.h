/// The probes for profilers: USDT probes otel_memory:alloc and otel_memory:free, as OpenTelemetry's memory profiling
/// expects them (its design document 00003). A probe is one instruction, nop, and a note in the library's file that
/// names its place. A profiler puts a breakpoint there, and counts up the probe's semaphore while it listens.
#pragma once

#include <stdint.h>

#include "preload/program/kernel.h"

extern volatile uint16_t otel_memory_alloc_semaphore HIDDEN;
extern volatile uint16_t otel_memory_free_semaphore HIDDEN;

void probe_alloc_fire(const void* block, uint64_t size, uint64_t weighted_bytes) HIDDEN;
void probe_free_fire(const void* block) HIDDEN;

/// A sample of `size` bytes that represents `weighted_bytes` in all.
static inline void probe_alloc(const void* block, uint64_t size, uint64_t weighted_bytes) {
  if (__builtin_expect(otel_memory_alloc_semaphore != 0, 0)) probe_alloc_fire(block, size, weighted_bytes);
}
/// The sample's block is about to be freed.
static inline void probe_free(const void* block) {
  if (__builtin_expect(otel_memory_free_semaphore != 0, 0)) probe_free_fire(block);
}
