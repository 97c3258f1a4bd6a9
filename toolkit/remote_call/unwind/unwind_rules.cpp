// Gives the evaluator of call frame information (preload/cfi) the memory of another process, and decides for which
// address a frame's rules are taken.
#include "toolkit/remote_call/unwind/unwind_rules.h"

#include <cassert>
#include <span>

namespace cmt::remote_call {
namespace {

std::size_t tables_in(const void* memory, std::uint64_t address, const std::uint8_t** bytes) {
  const std::span<const std::uint8_t> kept = static_cast<const RemoteMemory*>(memory)->kept_from(address);
  *bytes = kept.data();
  return kept.size();
}

bool load_word(void* context, std::uint64_t address, std::uint64_t* word) {
  return (*static_cast<const RemoteMemory**>(context))->read(address, word, sizeof *word);
}

}  // namespace

std::optional<Caller> find_caller(const RemoteMemory& memory, const Module& module, const FrameRegisters& frame,
                                  bool is_interrupted) {
  const RemoteMemory* stack = &memory;
  const CfiTables tables{module.unwind_table, tables_in, &memory};
  const CfiFrame cfi_frame{&tables, &frame, load_word, &stack};
  std::uint64_t pc = frame.pc();
  CfiFunction function;
  CfiRow row;
  // The trampoline of signals is returned to and not called: the instruction before it is another function's.
  bool is_known = cfi_find_function(&tables, pc, &function);
  const bool is_trampoline = is_known && function.is_signal_frame;
  if (!is_trampoline && !is_interrupted) is_known = cfi_find_function(&tables, --pc, &function);
  assert(!is_known || pc - function.begin < function.bytes);
  if (!is_known || !cfi_make_row(&tables, &function, pc, &row)) return std::nullopt;
  Caller caller;
  caller.was_signal_frame = function.is_signal_frame;
  caller.is_outermost = row.how[cfi_return] == cfi_undefined;
  if (caller.is_outermost) return caller;
  CfiCaller found;
  if (!cfi_find_caller(&cfi_frame, &row, &found)) return std::nullopt;
  static_cast<CfiRegisters&>(caller.registers) = found.registers;
  return caller;
}

}  // namespace cmt::remote_call
