// Our stacks beside those of libunwind and of libgcc's unwinder, from the same call.
#pragma once

#include <stdint.h>

struct StackAgreement {
  uint64_t sampled;
  uint64_t same;         // all of both
  uint64_t ours_longer;  // the same up to where libunwind stops
  uint64_t ours_shorter;
  uint64_t libgcc_has_ours;    // they differ, and libgcc's unwinder has the frame that we have
  uint64_t libgcc_has_theirs;  // the frame that libunwind has
  uint64_t libgcc_has_neither;
};

// Whether libunwind is installed.
int stack_agree_begin(void);

// `ours`: addresses, the innermost first. Adds to `sums`, which may be shared between threads, and writes the first
// differing stacks to standard error.
void stack_agree(const uint64_t* ours, int count, struct StackAgreement* sums);
