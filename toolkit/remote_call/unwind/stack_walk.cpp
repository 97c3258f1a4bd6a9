// Walks from frame to frame by unwind_rules.h, and stops at the first frame that no module describes.
#include "toolkit/remote_call/unwind/stack_walk.h"

#include <algorithm>
#include <cassert>

namespace cmt::remote_call {

const Module* module_at(const std::vector<Module>& modules, std::uint64_t address) {
  const auto after = std::upper_bound(modules.begin(), modules.end(), address,
                                      [](std::uint64_t at, const Module& module) { return at < module.begin; });
  if (after == modules.begin()) return nullptr;
  const Module& module = *(after - 1);
  return module.contains(address) ? &module : nullptr;
}

WalkedStack walk_stack(const RemoteMemory& memory, const std::vector<Module>& modules, FrameRegisters registers) {
  constexpr std::size_t frames_max = 1000;
  assert(std::is_sorted(modules.begin(), modules.end(),
                        [](const Module& one, const Module& next) { return one.begin < next.begin; }));
  WalkedStack stack;
  bool is_interrupted = true;
  while (stack.frames.size() < frames_max) {
    const Module* const module = module_at(modules, registers.pc());
    const auto caller =
        module != nullptr ? find_caller(memory, *module, registers, is_interrupted) : std::optional<Caller>();
    stack.frames.push_back({registers.pc(), registers.sp(), caller && caller->was_signal_frame});
    if (caller && (caller->is_outermost || caller->registers.pc() == 0)) return stack;
    const bool is_outwards = caller && (caller->registers.sp() > registers.sp() || caller->was_signal_frame);
    if (!is_outwards) break;
    is_interrupted = caller->was_signal_frame;
    registers = caller->registers;
  }
  stack.unknown_from = registers.sp();
  return stack;
}

}  // namespace cmt::remote_call
