#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "cmttrace/attach/modules.h"
#include "cmttrace/attach/remote_memory.h"

namespace cmt::attach {

/// The registers that a frame's rules are about, by their numbers in DWARF: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8
/// to r15, and the return address, which is where the frame is.
struct FrameRegisters {
  enum { rbp = 6, rsp = 7, return_address = 16, count = 17 };

  std::array<std::uint64_t, count> values{};

  std::uint64_t pc() const { return values[return_address]; }
  std::uint64_t sp() const { return values[rsp]; }
};

struct Caller {
  FrameRegisters registers;
  bool is_outermost = false;      ///< the frame that was asked about has no caller
  bool was_signal_frame = false;  ///< that frame is the kernel's, of a signal: its caller was interrupted
};

/// The caller of a frame, by the rules of the module's .eh_frame, for x86-64. `is_interrupted`: the frame's pc is the
/// instruction that is next, and not one behind a call. Nothing where there are no rules, or ones that are not known
/// here, or memory cannot be read.
std::optional<Caller> find_caller(const RemoteMemory& memory, const Module& module, const FrameRegisters& frame,
                                  bool is_interrupted);

}  // namespace cmt::attach
