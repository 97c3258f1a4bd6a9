/* Watches the time stamp counter on x86-64. Elsewhere it is never watched. */
#define _GNU_SOURCE
#include "cmtreplay/worker/clock/other_clocks.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>

static int was_read, is_watching;

int other_clock_was_read(void) { return __atomic_load_n(&was_read, __ATOMIC_RELAXED); }

int other_clocks_are_watched(void) { return is_watching; }

#if defined __x86_64__

void watch_other_clocks(void) {
  if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0) return;
  __builtin_ia32_rdtsc();
  is_watching = other_clock_was_read();
  __atomic_store_n(&was_read, 0, __ATOMIC_RELAXED);
  prctl(PR_SET_TSC, is_watching ? PR_TSC_SIGSEGV : PR_TSC_ENABLE, 0, 0, 0);
}

/* After a general protection fault the instruction is readable, since it was fetched. */
static int is_reading(const void* instruction) {
  static const uint8_t rdtsc[] = {0x0f, 0x31}, rdtscp[] = {0x0f, 0x01, 0xf9};
  return memcmp(instruction, rdtsc, sizeof rdtsc) == 0 || memcmp(instruction, rdtscp, sizeof rdtscp) == 0;
}

int is_other_clock(const void* context) {
  enum { general_protection = 13 };
  const ucontext_t* const stopped = context;
  int state = PR_TSC_ENABLE;
  if (stopped->uc_mcontext.gregs[REG_TRAPNO] != general_protection) return 0;
  if (prctl(PR_GET_TSC, &state, 0, 0, 0) != 0 || state != PR_TSC_SIGSEGV) return 0;
  if (!is_reading((const void*)stopped->uc_mcontext.gregs[REG_RIP])) return 0;
  __atomic_store_n(&was_read, 1, __ATOMIC_RELAXED);
  return prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0) == 0;
}

#else

void watch_other_clocks(void) {}

int is_other_clock(const void* context) {
  (void)context;
  return 0;
}

#endif
