#include "preload/program/clock.h"

#include "preload/program/record.h"
#include "preload/program/sandbox.h"

uint64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t record_slow_clock(void) {
  return sandbox_entered ? sandbox_clock() : clock_ns(CLOCK_MONOTONIC) >> stamp_shift;
}

// "Invariant TSC" (AMD and Intel: leaf 0x80000007, EDX bit 8).
bool clock_has_steady_tsc(void) {
  uint32_t a = 0x80000000u, b, c = 0, d;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if (a < 0x80000007u) return false;
  a = 0x80000007u;
  c = 0;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return d >> 8 & 1;
}
