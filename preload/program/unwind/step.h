/// One step of a walk: from a frame to its caller's.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/program/unwind/memory.h"
#include "preload/program/unwind/rules.h"

/// Stores the registers that functions preserve, the stack pointer and the address of the next instruction, by DWARF's
/// numbers, for a walk that begins at this place.
#define STORE_REGISTERS(values)  \
  __asm__ volatile(              \
      "mov %%rbx, 24(%0)\n\t"    \
      "mov %%rbp, 48(%0)\n\t"    \
      "mov %%rsp, 56(%0)\n\t"    \
      "mov %%r12, 96(%0)\n\t"    \
      "mov %%r13, 104(%0)\n\t"   \
      "mov %%r14, 112(%0)\n\t"   \
      "mov %%r15, 120(%0)\n\t"   \
      "lea 1f(%%rip), %%rax\n\t" \
      "mov %%rax, 128(%0)\n"     \
      "1:"                       \
      :                          \
      : "r"(values)              \
      : "rax", "memory")

/// A frame at which a walk has arrived.
struct Place {
  uint64_t key;      ///< of its rule (UnwindRule): its return address, or where a signal has interrupted it
  uintptr_t at;      ///< where the return address was loaded from: its rsp - 8
  uintptr_t rbp_at;  ///< where the frame's value of rbp is saved
};

enum Step {
  step_failed,  ///< no caller, or not known: the stack ends
  step_by_rsp,
  step_by_rbp,
  step_unverifiable,  ///< by more words than a rule from rsp or rbp needs
};

enum { code_bits = 47 };
static inline bool is_code_address(uint64_t address) { return address >> code_bits == 0; }

/// The frame of the function that has called one whose __builtin_frame_address(0) is `frame`.
static inline struct Place place_of_caller(const void* frame) {
  const uintptr_t at = (uintptr_t)frame;
  return (struct Place){((const uint64_t*)frame)[1], at + 8, at};
}

/// Steps by a rule that is neither from rsp nor from rbp.
enum Step step_slowly(struct UnwindThread* self, struct StackPart* part, struct Place* place,
                      uint64_t rule) UNWIND_HIDDEN;

/// Goes to the caller.
__attribute__((always_inline)) static inline enum Step step(struct UnwindThread* self, struct StackPart* part,
                                                            struct Place* place, uint64_t rule) {
  uintptr_t base = place->at + 8;
  const enum RuleKind kind = rule_kind(rule);
  if (__builtin_expect(kind != rule_from_rsp, 0)) {
    if (kind != rule_from_rbp) return step_slowly(self, part, place, rule);
    base = *(const uintptr_t*)place->rbp_at;
    if ((base - (place->at + 8)) >> code_bits != 0 || base % 8 != 0) return step_failed;
  }
  const uintptr_t at = base + rule_distance(rule) - 8;
  if (__builtin_expect(at >= part->end, 0) && !memory_extend(part, at)) return step_failed;
  if (rule_slot(rule)) place->rbp_at = base + 8 * (rule_slot(rule) - 1);
  place->at = at;
  place->key = *(const uint64_t*)at;
  return kind == rule_from_rsp ? step_by_rsp : step_by_rbp;
}
