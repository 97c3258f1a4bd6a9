// The processor's trap flag: SIGTRAP after each instruction.
#pragma once

#include <stdint.h>

enum { trap_flag = 0x100 };

static inline void set_trap(uint64_t flags) {
  __asm__ volatile(
      "lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n orq %0, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp"
      :
      : "r"(flags)
      : "memory", "cc");
}
