// Makes rules from rows of .eh_frame, and keeps them in a table that threads and signal handlers fill together.
#include "preload/program/unwind/rules.h"

#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>

#include "preload/cfi/cfi.h"
#include "preload/program/kernel.h"
#include "preload/program/unwind/memory.h"
#include "preload/program/unwind/modules.h"

enum { probes_max = 512, distance_max = 1 << 30, embedded_bytes_min = 64 << 10 };

struct UnwindTable* unwind_table;
uint32_t unwind_epoch;

static uint16_t* module_of_rule;

bool rules_begin(struct StackShare* share) {
  if (!modules_find_loader()) return false;
  modules_begin(share);
  unwind_table = &share->table;
  module_of_rule = share->module_of_rule;
  __atomic_add_fetch(&unwind_epoch, 1, __ATOMIC_RELEASE);
  return true;
}

static void forget_rules(uint32_t module) {
  const uint32_t used = __atomic_load_n(&unwind_table->used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < used && i < unwind_rules_max; i++) {
    if (module_of_rule[i] == module) __atomic_store_n(&unwind_table->rule[i].rule, rule_dead, __ATOMIC_RELEASE);
  }
  __atomic_fetch_or(&unwind_extras, unwind_lost_module, __ATOMIC_RELEASE);
  __atomic_add_fetch(&unwind_epoch, 1, __ATOMIC_RELEASE);
}

void unwind_forget_all(void) { __atomic_add_fetch(&unwind_epoch, 1, __ATOMIC_RELEASE); }

void unwind_module_freed(const void* link_map) { modules_remove(link_map, forget_rules); }

static bool load_nothing(void* context, uint64_t address, uint64_t* word) {
  (void)context, (void)address, (void)word;
  return false;
}

// Entries of a procedure linkage table have a CFA of rsp + 8 or 16, depending on the address of the code alone.
static bool is_rsp_plus(const struct CfiTables* tables, int64_t expression, uint64_t code, int64_t* distance) {
  struct CfiRegisters registers = {.value = {[cfi_return] = code}};
  const struct CfiFrame frame = {tables, &registers, load_nothing, NULL};
  const uint64_t some = 1 << 20, other = 3 << 20;
  uint64_t first, second;
  registers.value[cfi_rsp] = some;
  if (!cfi_evaluate(&frame, expression, NULL, &first)) return false;
  registers.value[cfi_rsp] = other;
  if (!cfi_evaluate(&frame, expression, NULL, &second)) return false;
  *distance = (int64_t)(first - some);
  return first - some == second - other;
}

static const struct CfiRegisters some_rbp = {.value = {[cfi_rbp] = 1 << 20}};

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
static bool is_deref_of_rbp(const struct CfiTables* tables, int64_t expression, int64_t* distance) {
  struct Expected expected = {.rbp = (uint64_t)7 << 40};
  const struct CfiFrame frame = {tables, &some_rbp, load_once, &expected};
  uint64_t result;
  if (!cfi_evaluate(&frame, expression, NULL, &result) || result != expected.rbp) return false;
  *distance = (int64_t)(expected.loaded_at - some_rbp.value[cfi_rbp]);
  return true;
}

static bool is_rbp(const struct CfiTables* tables, int64_t expression) {
  const struct CfiFrame frame = {tables, &some_rbp, load_nothing, NULL};
  uint64_t result;
  return cfi_evaluate(&frame, expression, NULL, &result) && result == some_rbp.value[cfi_rbp];
}

static uint64_t realigned_rule(const struct CfiTables* tables, const struct CfiRow* row) {
  int64_t distance;
  if (!is_deref_of_rbp(tables, row->cfa_offset, &distance) || distance % 8 || distance < -distance_max || distance > 0)
    return rule_full;
  if (row->how[cfi_rbp] != cfi_at_expression || !is_rbp(tables, row->value[cfi_rbp])) return rule_full;
  return rule_make(rule_realigned, distance, 1);
}

static uint64_t rule_of(const struct CfiTables* tables, const struct CfiRow* row, uint64_t code, bool is_exact) {
  if (row->is_signal_frame) return rule_signal;
  if (row->how[cfi_return] == cfi_undefined) return rule_outermost;
  if (row->how[cfi_return] != cfi_at_cfa || row->value[cfi_return] != -8) return rule_full;
  int64_t distance = row->cfa_offset;
  enum RuleKind kind = row->cfa_register == cfi_rsp ? rule_from_rsp : rule_from_rbp;
  if (row->has_cfa_expression) {
    if (!is_rsp_plus(tables, row->cfa_offset, code, &distance)) return realigned_rule(tables, row);
    kind = rule_from_rsp;
  } else if (row->cfa_register != cfi_rsp && row->cfa_register != cfi_rbp) {
    return rule_full;
  }
  if (distance < 8 || distance % 8 || distance > distance_max) return rule_full;
  if (row->how[cfi_rbp] == cfi_same) return rule_make(kind, distance, 0);
  const int64_t slot = distance + row->value[cfi_rbp];  // from the base
  // A signal at the end of a function that has already popped rbp: .eh_frame does not contain this.
  if (is_exact && kind == rule_from_rsp && row->how[cfi_rbp] == cfi_at_cfa && slot < 0)
    return rule_make(kind, distance, 0);
  if (row->how[cfi_rbp] != cfi_at_cfa || slot < 0 || slot % 8 || slot > distance - 16) return rule_full;
  must(slot / 8 + 1 < 1 << 28 && distance >> 32 == 0);  // the fields of a rule hold them
  return rule_make(kind, distance, (uint64_t)slot / 8 + 1);
}

// A call of an address, or, with FF /2, of a register or a word in memory.
bool follows_call(uintptr_t code) {
  enum { longest = 7 };
  const bool is_on_two_pages = (code - longest) / 4096 != (code - 1) / 4096;
  if (!memory_is_readable(code - 1) || (is_on_two_pages && !memory_is_readable(code - longest))) return false;
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

// The trampolines that Python 3.12 and 3.13.0 make with -X perf, one for each function, keep no frame pointer. After
// the call they are `add $8, %rsp; ret`, so the caller's return address is 8 bytes above rsp whatever the code before
// does. The call itself is not looked at: at the begin of a mapping, follows_call() could not read 7 bytes before the
// address. If a module is mapped here later, a stack that passes this address is wrong or cut, as with any wrong rule.
static bool is_return_over_8_bytes(uintptr_t code) {
  static const uint8_t instructions[] = {0x48, 0x83, 0xc4, 0x08, 0xc3};
  return memory_is_readable(code) && memory_is_readable(code + sizeof instructions - 1) &&
         memcmp((const void*)code, instructions, sizeof instructions) == 0;
}

// The rule of an address outside of modules: after a call by the frame pointer.
static uint64_t rule_of_jit(uintptr_t code, bool is_exact) {
  if (is_exact) return rule_make(rule_jit, 16, 1);
  if (is_return_over_8_bytes(code)) return rule_make(rule_from_rsp, 16, 0);
  return follows_call(code) ? rule_make(rule_jit, 16, 1) : rule_make(rule_jit, 0, 0);
}

// The first instructions of glibc's loader have no entry in .eh_frame. They call the libraries' initialisers
// (_dl_start_user), and then jump to the program's entry.
static bool is_entry_of_loader(const struct LoadedModule* module, uintptr_t instruction) {
  enum { entry_bytes_max = 128 };
  if (!unwind_loader_begin || module->begin != unwind_loader_begin) return false;  // not known with musl
  const ElfW(Ehdr)* file = (const ElfW(Ehdr)*)module->begin;
  return instruction - (((const struct link_map*)module->link_map)->l_addr + file->e_entry) < entry_bytes_max;
}

// Makes the rule of a key. *number is that of the module with the code, or 0.
static uint64_t make_rule(uint64_t key, uint32_t* number) {
  const uintptr_t code = (uintptr_t)(key & ~UNWIND_EXACT);
  const uintptr_t instruction = key & UNWIND_EXACT ? code : code - 1;
  struct LoadedModule module;
  struct CfiRow row;
  *number = 0;
  if (!module_find(instruction, &module)) return rule_of_jit(code, (key & UNWIND_EXACT) != 0);
  *number = module_number(&module);
  const struct CfiTables tables = module_tables(&module);
  if (*number == 0) return rule_unknown;
  if (!cfi_find_row(&tables, instruction, &row)) {
    if (is_entry_of_loader(&module, instruction)) return rule_outermost;
    // musl's loader is its libc.so, which keeps neither frame pointers nor .eh_frame.
    const bool is_embedded =
        module.begin != getauxval(AT_BASE) && cfi_distance_of_neighbours(&tables, instruction) >= embedded_bytes_min;
    return is_embedded ? rule_make(rule_bare, 16, 1) : rule_make(rule_unknown, 0, 0);
  }
  return rule_of(&tables, &row, code, (key & UNWIND_EXACT) != 0);
}

// Makes a new entry. Returns NULL if the table is full.
static struct UnwindRule* make_entry(uint64_t key, uint64_t rule, uint32_t module) {
  if (__atomic_load_n(&unwind_table->used, __ATOMIC_RELAXED) >= unwind_rules_max) return NULL;
  const uint32_t index = __atomic_fetch_add(&unwind_table->used, 1, __ATOMIC_RELAXED);
  if (index >= unwind_rules_max) return NULL;
  struct UnwindRule* entry = &unwind_table->rule[index];
  must(rule_kind(rule) != rule_dead);
  entry->rule = rule;
  module_of_rule[index] = (uint16_t)module;
  __atomic_store_n(&entry->key, key, __ATOMIC_RELEASE);
  return entry;
}

// Exchanges two entries of one key, so that the live one is first. A third one may be lost if threads do that at the
// same time; then it is made once more.
static void put_first(uint32_t* dead, uint32_t* alive) {
  if (!dead) return;
  uint32_t first = __atomic_load_n(dead, __ATOMIC_ACQUIRE), second = __atomic_load_n(alive, __ATOMIC_ACQUIRE);
  const uint32_t moved = first;
  __atomic_compare_exchange_n(dead, &first, second, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  __atomic_compare_exchange_n(alive, &second, moved, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

const struct UnwindRule* rule_find_slowly(uint64_t key) {
  uint32_t at = rule_first_slot(key), module = 0;
  uint32_t* dead = NULL;  // the first slot with the key and a module that is gone
  uint64_t rule = rule_dead;
  struct UnwindRule* made = NULL;
  for (int probes = 0; probes < probes_max; at = (at + 1) & (unwind_slots_max - 1), probes++) {
    uint32_t* slot = &unwind_table->slot[at];
    uint32_t index = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    struct UnwindRule* there = &unwind_table->rule[index - (index != 0)];
    if (index && there->key != key) continue;
    const bool is_alive = index && rule_is_for(there, key);
    if (!index && !dead && __atomic_load_n(&unwind_table->used, __ATOMIC_RELAXED) >= unwind_rules_max) return NULL;
    if (rule == rule_dead && !is_alive) rule = make_rule(key, &module);
    if (is_alive || (index && module && module_of_rule[index - 1] == module)) {
      if (!is_alive) __atomic_store_n(&there->rule, rule, __ATOMIC_RELEASE);  // its module has come back
      put_first(dead, slot);
      return there;
    }
    if (index) {
      if (!dead) dead = slot;
      continue;
    }
    if (!made) made = make_entry(key, rule, module);
    if (!made) return NULL;
    if (__atomic_compare_exchange_n(slot, &index, rule_index(made) + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      put_first(dead, slot);
      return made;
    }
    at = (at - 1) & (unwind_slots_max - 1);  // look again: another thread, or a signal handler, was faster
  }
  return NULL;
}

const struct UnwindRule* rule_check_jit(const struct UnwindRule* entry) {
  const uint64_t key = entry->key;
  struct LoadedModule module;
  if (!module_find((uintptr_t)(key & ~UNWIND_EXACT) - !(key & UNWIND_EXACT), &module)) return entry;
  __atomic_store_n(&unwind_table->rule[rule_index(entry)].rule, rule_dead, __ATOMIC_RELEASE);
  return rule_find_slowly(key);
}
