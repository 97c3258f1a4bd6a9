/// The table of rules, by address of code: how to get from a function's frame to its caller's.
///
/// A rule is one word. Nearly all functions have one of the first two kinds, in which the CFA is rsp or rbp plus a
/// number.
///
///     63            32 | 31                 4 | 3   0
///     CFA - base       | saved rbp            | kind
///
/// The saved rbp is at base + 8 * (n - 1); if n is 0, rbp is unchanged. The base is rsp or rbp.
///
/// A rule is made from .eh_frame when its address is first seen. Threads and signal handlers may do that at the same
/// time: an entry is complete before an atomic exchange puts it into the index. If two were made for one address, one
/// is wasted. Entries never get another address or module. When a module is unloaded, its rules become rule_dead. The
/// same address then gets a new entry, and records of stacks with the old entry remain true. If the same module is
/// loaded again, the old entry is valid again.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/program/unwind/unwind.h"

enum RuleKind {
  rule_dead,  ///< of a module that is gone
  rule_from_rsp,
  rule_from_rbp,
  rule_realigned,  ///< CFA = *(rbp + n): the function has aligned its stack; the saved rbp as above, base rbp
  rule_signal,     ///< a signal handler's caller: registers as the kernel has saved them
  rule_outermost,  ///< there is no caller
  rule_full,       ///< needs other registers (full.c)
  rule_jit,      ///< not of a module: by its frame pointer, or, where no call precedes the address (n = 0), not at all
  rule_bare,     ///< in a large part of a module that .eh_frame leaves out (V8's builtins): by its frame pointer
  rule_unknown,  ///< no way to go on
};

static inline enum RuleKind rule_kind(uint64_t rule) { return (enum RuleKind)(rule & 15); }
static inline uint64_t rule_distance(uint64_t rule) { return rule >> 32; }
static inline uint64_t rule_slot(uint64_t rule) { return rule >> 4 & 0xfffffff; }
static inline uint64_t rule_make(enum RuleKind kind, int64_t distance, uint64_t slot) {
  return (uint64_t)distance << 32 | slot << 4 | (uint64_t)kind;
}

extern struct UnwindTable* unwind_table UNWIND_HIDDEN;
/// The age of last stacks: rises when a module goes, and in a new process.
extern uint32_t unwind_epoch UNWIND_HIDDEN;

/// Code of 32 bytes shares a slot, so that neighbouring code, which is used together, has neighbouring slots.
static inline uint32_t rule_first_slot(uint64_t key) { return (uint32_t)(key >> 5) & (unwind_slots_max - 1); }

static inline uint32_t rule_index(const struct UnwindRule* entry) { return (uint32_t)(entry - unwind_table->rule); }
static inline const struct UnwindRule* rule_of_code(uint64_t code) { return &unwind_table->rule[code >> 47]; }

static inline bool rule_is_for(const struct UnwindRule* entry, uint64_t key) {
  return __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE) == key &&
         rule_kind(__atomic_load_n(&entry->rule, __ATOMIC_RELAXED)) != rule_dead;
}

/// The entry of a key, or NULL: the table is full.
const struct UnwindRule* rule_find_slowly(uint64_t key) UNWIND_HIDDEN;
static inline const struct UnwindRule* rule_find(uint64_t key) {
  const uint32_t index = __atomic_load_n(&unwind_table->slot[rule_first_slot(key)], __ATOMIC_ACQUIRE);
  const struct UnwindRule* entry = &unwind_table->rule[index - (index != 0)];
  return __builtin_expect(rule_is_for(entry, key), 1) ? entry : rule_find_slowly(key);
}

/// The entry to use in place of one with rule_jit: a module may have been mapped there since.
const struct UnwindRule* rule_check_jit(const struct UnwindRule* entry) UNWIND_HIDDEN;

/// Whether the code before a return address is a call.
bool follows_call(uintptr_t code) UNWIND_HIDDEN;

/// Returns false if this libc lacks a function of its loader that is needed.
bool rules_begin(struct StackShare* share) UNWIND_HIDDEN;
