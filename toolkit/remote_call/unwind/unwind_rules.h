/// Finds a frame's caller by the .eh_frame in the memory of a stopped process, so that no file is needed.
#pragma once

#include <cstdint>
#include <optional>

#include "preload/cfi/cfi.h"
#include "toolkit/remote_call/modules.h"
#include "toolkit/remote_call/remote_memory.h"

namespace cmt::remote_call {

/// The registers of a frame by their numbers in DWARF: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15. The last is
/// the return address: the frame's place in the code.
struct FrameRegisters : CfiRegisters {
  std::uint64_t pc() const { return value[cfi_return]; }
  std::uint64_t sp() const { return value[cfi_rsp]; }
};

struct Caller {
  FrameRegisters registers;
  bool is_outermost = false;      ///< the frame that was asked about has no caller
  bool was_signal_frame = false;  ///< that frame is the kernel's, of a signal: its caller was interrupted
};

/// Finds the caller of a frame by the rules of its module, for x86-64. `is_interrupted`: the frame's pc is the next
/// instruction, and no return address. Returns nullopt if the module has no rules for the pc, a rule is not supported
/// (preload/cfi/cfi.h), or memory cannot be read.
///
/// Takes some 3 us. Pages of tables are kept, so a second look at a function costs no system call.
std::optional<Caller> find_caller(const RemoteMemory& memory, const Module& module, const FrameRegisters& frame,
                                  bool is_interrupted);

}  // namespace cmt::remote_call
