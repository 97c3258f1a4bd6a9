#pragma once

#include <cstdint>
#include <vector>

#include "cmttrace/attach/modules.h"
#include "cmttrace/attach/remote_memory.h"
#include "cmttrace/attach/unwind/unwind_rules.h"

namespace cmt::attach {

struct Frame {
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;
  bool is_signal = false;  ///< the kernel's, which has called a signal handler
};

/// The call stack of a thread that is stopped.
struct WalkedStack {
  std::vector<Frame> frames;  ///< innermost first
  /// Where the part of the stack begins in which the frames are not known, as those of code that was compiled at run
  /// time; 0: all are known.
  std::uint64_t unknown_from = 0;
};

/// Walks at most some hundred frames: beyond them they are not known. `modules` by address.
WalkedStack walk_stack(const RemoteMemory& memory, const std::vector<Module>& modules, FrameRegisters registers);

/// The module that has an address; null: none.
const Module* module_at(const std::vector<Module>& modules, std::uint64_t address);

}  // namespace cmt::attach
