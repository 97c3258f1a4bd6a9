#include "preload/program/unwind/rules.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <sys/auxv.h>

#include "preload/program/unwind/memory.h"

enum { probes_max = 512, modules_max = 1024, distance_max = 1 << 30 };

struct UnwindTable* unwind_table;
uint32_t unwind_epoch;
uintptr_t unwind_loader_begin, unwind_loader_bytes;

// A module of which there are rules. 0: unused; no_module: one that is gone. Written as a whole by compare and exchange
// of the link_map; begin and end follow, and are needed only when the module goes.
struct KnownModule {
  uintptr_t link_map;
  uintptr_t begin, end;
};
enum { no_module = 1 };

static struct {
  int (*find_object)(void*, struct dl_find_object*);
  struct KnownModule modules[modules_max];
} rules;

bool rules_begin(struct UnwindTable* table) {
  struct dl_find_object loader;
  if (!rules.find_object) *(void**)&rules.find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
  if (!rules.find_object) return false;
  if (rules.find_object((void*)getauxval(AT_BASE), &loader) == 0) {
    unwind_loader_begin = (uintptr_t)loader.dlfo_map_start;
    unwind_loader_bytes = (uintptr_t)loader.dlfo_map_end - unwind_loader_begin;
  }
  unwind_table = table;
  __atomic_add_fetch(&unwind_epoch, 1, __ATOMIC_RELEASE);
  return true;
}

// _dl_find_object (glibc 2.35) takes no lock and allocates nothing.
bool module_find(uintptr_t address, struct CfiModule* module) {
  struct dl_find_object found;
  if (rules.find_object((void*)address, &found) != 0) return false;
  module->link_map = found.dlfo_link_map;
  module->begin = (uintptr_t)found.dlfo_map_start;
  module->end = (uintptr_t)found.dlfo_map_end;
  module->header = (uintptr_t)found.dlfo_eh_frame;
  module->info_begin = module->begin;
  module->info_end = module->end;
  if (module->header < module->begin || module->header >= module->end) {
    // A program at a fixed address, whose segments the loader knows apart. Which one has .eh_frame, it does not say.
    enum { info_distance_max = 1 << 30 };
    module->info_begin = module->header > info_distance_max ? module->header - info_distance_max : 0;
    module->info_end = module->header + info_distance_max;
  }
  return true;
}

// Remembers a module, so that its rules can be found when it goes. False: there are too many.
static bool remember_module(const struct CfiModule* module) {
  const uintptr_t link_map = (uintptr_t)module->link_map;
  const uint32_t first = (uint32_t)(link_map >> 4 ^ link_map >> 14);
  for (uint32_t i = 0; i < modules_max; i++) {
    struct KnownModule* known = &rules.modules[(first + i) % modules_max];
    uintptr_t there = __atomic_load_n(&known->link_map, __ATOMIC_ACQUIRE);
    if (there == link_map && known->begin == module->begin) return true;
    if (there > no_module) continue;
    // A module may get two entries, by two threads or because of a tombstone before the first: that does no harm.
    if (!__atomic_compare_exchange_n(&known->link_map, &there, link_map, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      continue;
    known->begin = module->begin;
    __atomic_store_n(&known->end, module->end, __ATOMIC_RELEASE);
    return true;
  }
  return false;
}

void unwind_module_freed(const void* link_map) {
  if ((uintptr_t)link_map <= no_module || !unwind_table) return;
  for (int i = 0; i < modules_max; i++) {
    struct KnownModule* known = &rules.modules[i];
    if (__atomic_load_n(&known->link_map, __ATOMIC_ACQUIRE) != (uintptr_t)link_map) continue;
    const uintptr_t begin = known->begin, bytes = __atomic_load_n(&known->end, __ATOMIC_ACQUIRE) - begin;
    const uint32_t used = __atomic_load_n(&unwind_table->used, __ATOMIC_ACQUIRE);
    for (uint32_t k = 0; k < used && k < unwind_rules_max; k++) {
      struct UnwindRule* entry = &unwind_table->rule[k];
      if ((uintptr_t)(entry->key & ~UNWIND_EXACT) - begin <= bytes)  // the last call of a module returns to its end
        __atomic_store_n(&entry->rule, rule_dead, __ATOMIC_RELEASE);
    }
    known->end = 0;
    __atomic_store_n(&known->link_map, no_module, __ATOMIC_RELEASE);
    __atomic_add_fetch(&unwind_epoch, 1, __ATOMIC_RELEASE);
  }
}

static bool load_nothing(void* context, uint64_t address, uint64_t* word) {
  (void)context, (void)address, (void)word;
  return false;
}

// Entries of a procedure linkage table have a CFA of rsp + 8 or 16, depending on the address of the code alone.
static bool is_rsp_plus(int64_t expression, uint64_t code, int64_t* distance) {
  struct CfiRegisters registers = {.value = {0}};
  const uint64_t some = 1 << 20, other = 3 << 20;
  uint64_t first, second;
  registers.value[cfi_return] = code;
  registers.value[cfi_rsp] = some;
  if (!cfi_evaluate(expression, &registers, NULL, load_nothing, NULL, &first)) return false;
  registers.value[cfi_rsp] = other;
  if (!cfi_evaluate(expression, &registers, NULL, load_nothing, NULL, &second)) return false;
  *distance = (int64_t)(first - some);
  return first - some == second - other;
}

struct Expected {
  uint64_t rbp, loaded_at;
};
static bool load_once(void* context, uint64_t address, uint64_t* word) {
  struct Expected* expected = context;
  if (expected->loaded_at) return false;
  expected->loaded_at = address;
  *word = expected->rbp;  // any value that is recognised
  return true;
}

// GCC aligns a stack by keeping the unaligned rsp at rbp - 8.
static bool is_deref_of_rbp(int64_t expression, int64_t* distance) {
  struct CfiRegisters registers = {.value = {[cfi_rbp] = 1 << 20}};
  struct Expected expected = {.rbp = (uint64_t)7 << 40};
  uint64_t result;
  if (!cfi_evaluate(expression, &registers, NULL, load_once, &expected, &result) || result != expected.rbp)
    return false;
  *distance = (int64_t)(expected.loaded_at - registers.value[cfi_rbp]);
  return true;
}

static bool rbp_plus(int64_t expression, int64_t* distance) {
  struct CfiRegisters registers = {.value = {[cfi_rbp] = 1 << 20}};
  uint64_t result;
  if (!cfi_evaluate(expression, &registers, NULL, load_nothing, NULL, &result)) return false;
  *distance = (int64_t)(result - registers.value[cfi_rbp]);
  return true;
}

static uint64_t realigned_rule(const struct CfiRow* row) {
  int64_t distance, saved;
  if (!is_deref_of_rbp(row->cfa_offset, &distance) || distance % 8 || distance < -distance_max || distance > 0)
    return rule_full;
  if (row->how[cfi_rbp] != cfi_at_expression || !rbp_plus(row->value[cfi_rbp], &saved) || saved) return rule_full;
  return rule_make(rule_realigned, distance, 1);
}

static uint64_t rule_of(const struct CfiRow* row, uint64_t code, bool is_exact) {
  if (row->is_signal_frame) return rule_signal;
  if (row->how[cfi_return] == cfi_undefined) return rule_outermost;
  if (row->how[cfi_return] != cfi_at_cfa || row->value[cfi_return] != -8) return rule_full;
  int64_t distance = row->cfa_offset;
  enum RuleKind kind = row->cfa_register == cfi_rsp ? rule_from_rsp : rule_from_rbp;
  if (row->has_cfa_expression) {
    if (!is_rsp_plus(row->cfa_offset, code, &distance)) return realigned_rule(row);
    kind = rule_from_rsp;
  } else if (row->cfa_register != cfi_rsp && row->cfa_register != cfi_rbp) {
    return rule_full;
  }
  if (distance < 8 || distance % 8 || distance > distance_max) return rule_full;
  if (row->how[cfi_rbp] == cfi_same) return rule_make(kind, distance, 0);
  const int64_t slot = distance + row->value[cfi_rbp];  // from the base
  // A signal at the end of a function, which has popped rbp: .eh_frame does not say so.
  if (is_exact && kind == rule_from_rsp && row->how[cfi_rbp] == cfi_at_cfa && slot < 0)
    return rule_make(kind, distance, 0);
  if (row->how[cfi_rbp] != cfi_at_cfa || slot < 0 || slot % 8 || slot > distance - 16) return rule_full;
  return rule_make(kind, distance, (uint64_t)slot / 8 + 1);
}

// Whether the code before a return address is a call: of an address, or, with FF /2, of a register or a word in memory.
static bool follows_call(uintptr_t code) {
  enum { longest = 7 };
  if (!memory_is_readable(code - longest) || !memory_is_readable(code - 1)) return false;
  const uint8_t* end = (const uint8_t*)code;
  if (end[-5] == 0xe8) return true;
  for (int bytes = 2; bytes <= longest; bytes++) {
    const uint8_t modrm = end[1 - bytes], mode = modrm >> 6, base = modrm & 7;
    if (end[-bytes] != 0xff || (modrm >> 3 & 7) != 2) continue;
    const int sib = mode != 3 && base == 4;
    const bool has_4_bytes = mode == 2 || (mode == 0 && (base == 5 || (sib && (end[2 - bytes] & 7) == 5)));
    if (bytes == 2 + sib + (mode == 1 ? 1 : has_4_bytes ? 4 : 0)) return true;
  }
  return false;
}

static uint64_t make_rule(uint64_t key) {
  const uintptr_t code = (uintptr_t)(key & ~UNWIND_EXACT);
  const uintptr_t instruction = key & UNWIND_EXACT ? code : code - 1;
  struct CfiModule module;
  struct CfiRow row;
  if (!module_find(instruction, &module))
    return key & UNWIND_EXACT || follows_call(code) ? rule_make(rule_jit, 16, 1) : rule_make(rule_jit, 0, 0);
  if (!remember_module(&module) || !module.header || !cfi_find_row(&module, instruction, &row)) return rule_unknown;
  return rule_of(&row, code, (key & UNWIND_EXACT) != 0);
}

// A new entry. NULL: the table is full.
static struct UnwindRule* make_entry(uint64_t key) {
  const uint64_t rule = make_rule(key);
  if (__atomic_load_n(&unwind_table->used, __ATOMIC_RELAXED) >= unwind_rules_max) return NULL;
  const uint32_t index = __atomic_fetch_add(&unwind_table->used, 1, __ATOMIC_RELAXED);
  if (index >= unwind_rules_max) return NULL;
  struct UnwindRule* entry = &unwind_table->rule[index];
  entry->rule = rule;
  __atomic_store_n(&entry->key, key, __ATOMIC_RELEASE);
  return entry;
}

const struct UnwindRule* rule_find_slowly(uint64_t key) {
  uint32_t at = rule_first_slot(key);
  struct UnwindRule* made = NULL;
  for (int probes = 0; probes < probes_max; at = (at + 1) & (unwind_slots_max - 1), probes++) {
    uint32_t* slot = &unwind_table->slot[at];
    uint32_t index = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (index && unwind_table->rule[index - 1].key != key) continue;
    if (index && rule_is_for(&unwind_table->rule[index - 1], key)) return &unwind_table->rule[index - 1];
    if (!made) made = make_entry(key);
    if (!made) return NULL;
    // Empty, or of a module that is gone.
    if (__atomic_compare_exchange_n(slot, &index, rule_index(made) + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return made;
    at = (at - 1) & (unwind_slots_max - 1);  // look again: another thread, or a signal handler, was faster
  }
  return NULL;
}

const struct UnwindRule* rule_check_jit(const struct UnwindRule* entry) {
  const uint64_t key = entry->key;
  struct CfiModule module;
  if (!module_find((uintptr_t)(key & ~UNWIND_EXACT) - !(key & UNWIND_EXACT), &module)) return entry;
  __atomic_store_n(&unwind_table->rule[rule_index(entry)].rule, rule_dead, __ATOMIC_RELEASE);
  return rule_find_slowly(key);
}
