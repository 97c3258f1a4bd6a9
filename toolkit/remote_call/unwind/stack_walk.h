/// The call stack of a stopped thread of another process.
#pragma once

#include <cstdint>
#include <vector>

#include "toolkit/remote_call/modules.h"
#include "toolkit/remote_call/remote_memory.h"
#include "toolkit/remote_call/unwind/unwind_rules.h"

namespace cmt::remote_call {

struct Frame {
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;
  bool is_signal = false;  ///< the kernel's, which has called a signal handler
};

/// The call stack of a thread that is stopped.
struct WalkedStack {
  std::vector<Frame> frames;  ///< innermost first
  /// The begin of the part of the stack whose frames are not known, such as those of code compiled at run time; 0: all
  /// are known.
  std::uint64_t unknown_from = 0;
};

/// Walks at most 1000 frames; those beyond are unknown. `modules` by address.
WalkedStack walk_stack(const RemoteMemory& memory, const std::vector<Module>& modules, FrameRegisters registers);

/// Returns the module that has an address, or null.
const Module* module_at(const std::vector<Module>& modules, std::uint64_t address);

}  // namespace cmt::remote_call
