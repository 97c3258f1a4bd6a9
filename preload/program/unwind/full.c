// Steps that need more than a rule: over the frame of a signal handler, and of functions whose CFA follows from other
// registers than rsp and rbp. The frequent case is the lazy binding of functions: _dl_runtime_resolve keeps rsp in rbx,
// and the loader that it calls sometimes allocates. A walk by rules does not know rbx. So the stack is walked once more
// from here, or from where the capture has left the program's stack, with all registers, at a microsecond a frame.
#include <stddef.h>
#include <string.h>

#include "preload/program/unwind/modules.h"
#include "preload/program/unwind/step.h"

enum { frames_walked_max = 4096, full_steps_max = 8 /* of one capture */, red_zone_bytes = 128 };

_Static_assert((int)cfi_registers == (int)unwind_registers, "the registers of a walk from here");

struct FullWalk {
  struct StackPart* part;
  struct CfiRegisters registers;  // of the frame; cfi_return: its address
  bool is_exact;                  // the address is no return address
  uintptr_t rbp_at;               // 0: nowhere yet
};

static bool load(void* context, uint64_t address, uint64_t* word) {
  struct FullWalk* walk = context;
  if (!memory_holds(walk->part, address)) return false;
  *word = *(const uint64_t*)address;
  return true;
}

// Registers in a ucontext (asm/sigcontext.h), from its begin, by DWARF's numbers.
static const uint16_t saved_by_signal[cfi_registers] = {144, 136, 152, 128, 112, 104, 120, 160, 40,
                                                        48,  56,  64,  72,  80,  88,  96,  168};

static bool leave_handler(struct UnwindThread* self, struct FullWalk* walk) {
  const uint64_t context = walk->registers.value[cfi_rsp];
  for (int i = 0; i < cfi_registers; i++) {
    if (!load(walk, context + saved_by_signal[i], &walk->registers.value[i])) return false;
  }
  walk->rbp_at = context + saved_by_signal[cfi_rbp];
  walk->is_exact = true;
  const uint64_t stack = walk->registers.value[cfi_rsp];
  if (stack % 8 || !memory_is_readable(stack) || !memory_is_readable(stack - red_zone_bytes)) return false;
  memory_enter(self, stack - red_zone_bytes, walk->part);
  return true;
}

static bool step_fully(struct UnwindThread* self, struct FullWalk* walk) {
  struct LoadedModule module;
  struct CfiRow row;
  struct CfiCaller caller;
  const uintptr_t code = (uintptr_t)walk->registers.value[cfi_return] - !walk->is_exact;
  if (!module_find(code, &module)) return false;
  const struct CfiTables tables = module_tables(&module);
  const struct CfiFrame frame = {&tables, &walk->registers, load, walk};
  if (!cfi_find_row(&tables, code, &row)) return false;
  if (row.is_signal_frame) return leave_handler(self, walk);
  if (!cfi_find_caller(&frame, &row, &caller)) return false;
  if (caller.cfa <= walk->registers.value[cfi_rsp] || caller.cfa % 8) return false;
  if (row.how[cfi_rbp] != cfi_same) walk->rbp_at = caller.rbp_at;
  walk->registers = caller.registers;
  walk->registers.value[cfi_rsp] = caller.cfa;
  walk->is_exact = false;
  return true;
}

// Walks from a function of ours to the frame at `place`, and one step on.
static __attribute__((noinline)) bool walk_from_here(struct UnwindThread* self, struct StackPart* part,
                                                     struct Place* place) {
  struct FullWalk walk = {.part = part, .is_exact = true};
  struct StackPart target = *part;
  const uint64_t code = place->key & ~UNWIND_EXACT;
  if (self->is_elsewhere)
    memcpy(walk.registers.value, self->registers, sizeof self->registers);
  else
    STORE_REGISTERS(walk.registers.value);
  memory_enter(self, walk.registers.value[cfi_rsp], part);
  for (int frames = 0; frames < frames_walked_max; frames++) {
    const bool is_there = walk.registers.value[cfi_rsp] == place->at + 8 && walk.registers.value[cfi_return] == code;
    if (!step_fully(self, &walk)) break;
    if (!is_there) continue;
    if (!walk.rbp_at) break;
    place->key = walk.registers.value[cfi_return] | (walk.is_exact ? UNWIND_EXACT : 0);
    place->at = walk.registers.value[cfi_rsp] - 8;
    place->rbp_at = walk.rbp_at;
    return true;
  }
  *part = target;
  return false;
}

static bool step_over_signal(struct UnwindThread* self, struct StackPart* part, struct Place* place) {
  struct FullWalk walk = {.part = part};
  walk.registers.value[cfi_rsp] = place->at + 8;
  if (!leave_handler(self, &walk)) return false;
  place->key = walk.registers.value[cfi_return] | UNWIND_EXACT;
  place->at = walk.registers.value[cfi_rsp] - 8;
  place->rbp_at = walk.rbp_at;
  return true;
}

static bool step_over_realigned(struct StackPart* part, struct Place* place, uint64_t rule) {
  const uintptr_t rbp = *(const uintptr_t*)place->rbp_at;
  const uintptr_t kept = rbp + (uintptr_t)(int32_t)rule_distance(rule);
  if (kept < place->at + 8 || !memory_holds(part, kept) || !memory_holds(part, rbp)) return false;
  const uintptr_t cfa = *(const uintptr_t*)kept;
  if (cfa < rbp + 16 || !memory_holds(part, cfa - 8)) return false;
  *place = (struct Place){*(const uint64_t*)(cfa - 8), cfa - 8, rbp};
  return true;
}

static bool step_by_frame_pointer(struct StackPart* part, struct Place* place) {
  const uintptr_t rbp = *(const uintptr_t*)place->rbp_at;
  if (rbp < place->at + 8 || !memory_holds(part, rbp) || !memory_holds(part, rbp + 8)) return false;
  *place = (struct Place){*(const uint64_t*)(rbp + 8), rbp + 8, rbp};
  return true;
}

enum Step step_slowly(struct UnwindThread* self, struct StackPart* part, struct Place* place, uint64_t rule) {
  switch (rule_kind(rule)) {
    case rule_realigned:
      return step_over_realigned(part, place, rule) ? step_unverifiable : step_failed;
    case rule_signal:
      return step_over_signal(self, part, place) ? step_unverifiable : step_failed;
    case rule_full:
      if (self->full_steps++ >= full_steps_max) return step_failed;
      return walk_from_here(self, part, place) ? step_unverifiable : step_failed;
    case rule_bare: {  // assembly that keeps no frame pointers is rather cut than followed anywhere
      const struct Place callee = *place;
      if (step_by_frame_pointer(part, place) && follows_call(place->key)) return step_by_rbp;
      *place = callee;
      return step_failed;
    }
    case rule_jit:
      return rule_distance(rule) && step_by_frame_pointer(part, place) ? step_by_rbp : step_failed;
    default:
      return step_failed;
  }
}
