/// Makes a stopped thread of another process call a function, so that the call ends by itself even if we are killed.
#pragma once

#include <sys/user.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "toolkit/remote_call/remote_memory.h"
#include "toolkit/remote_call/stopped_thread.h"
#include "toolkit/remote_call/unwind/stack_walk.h"

namespace cmt::remote_call {

/// A function for a thread to call. It must return by `ret`.
struct Call {
  std::uint64_t function = 0;
  /// Up to six.
  std::vector<std::uint64_t> arguments{};
  /// Bytes that arguments point to; the function may change them.
  std::string bytes{};
  /// The arguments that do, by number. Their values are offsets in the bytes.
  std::vector<std::size_t> bytes_arguments{};
};

/// The call has not returned in time. The thread has been let go, and finishes the call alone.
struct CallStuck : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Makes a stopped thread call functions, and go on afterwards as if nothing had happened. One change of its registers
/// begins a call. The call ends by itself and restores everything, even if we are killed: injected_call.cpp.
class Injector {
 public:
  /// `return_trampoline`: the address of libc's `mov $15, %rax; syscall`, to which signal handlers return.
  Injector(const RemoteMemory& memory, StoppedThread& thread, std::uint64_t return_trampoline);

  /// Whether all is known that a call must restore. The thread has not been changed yet.
  bool is_possible() const { return is_possible_; }

  /// Whether the stop has interrupted a system call, which call() and finish() bring back as it was.
  bool was_waiting() const { return was_waiting_; }
  /// Whether the kernel has saved how the system call continues. Then only await_return() keeps its remaining time, and
  /// only if it is called before the function has returned.
  bool has_saved_time() const { return has_saved_time_; }

  /// Begins a call. The thread may be let go at once, and makes it then by itself. Throws ThreadGone and CallStuck.
  void begin(const Call& wanted);
  /// The address by which is_in_call() finds the call.
  std::uint64_t frame() const { return frame_at_; }

  /// Waits until the function has returned. `at_stop` is called at each system call that it makes. Throws ThreadGone
  /// and CallStuck.
  void await_return(const std::function<void(const SystemCall&)>& at_stop);

  /// Returns the bytes of the call as the function has left them; empty if they cannot be read. To be called after
  /// await_return() and before finish(): the thread uses this part of its stack again.
  std::string read_bytes() const;

  /// Gives the thread its registers back. The kernel then decides what happens to an interrupted system call: it begins
  /// anew, or ends with EINTR for a signal that has come meanwhile.
  void finish();

 private:
  std::uint64_t put_frame(const Call& wanted);
  void return_in_place_of_kernel();

  const RemoteMemory& memory_;
  StoppedThread& thread_;
  const std::uint64_t return_trampoline_;
  user_regs_struct original_{};  ///< for the kernel: with the result of an interrupted call
  user_regs_struct anew_{};      ///< the same for a call that begins anew
  user_regs_struct resumed_{};   ///< for rt_sigreturn: with the interrupted call to be made once more
  std::vector<char> original_state_;
  std::vector<char> extended_state_;  ///< the same in the form of a signal frame
  std::uint64_t signal_mask_ = 0;
  std::uint64_t frame_at_ = 0, bytes_at_ = 0;
  std::size_t bytes_ = 0;
  bool is_possible_ = false, is_changed_ = false, was_waiting_ = false, has_saved_time_ = false;
};

/// Whether a call that was begun is still on the stack of its thread, which is stopped.
bool is_in_call(const WalkedStack& stack, std::uint64_t frame, std::uint64_t return_trampoline);

/// Below a thread's stack pointer: its red zone, the frame, and what the called function may need.
constexpr std::uint64_t injection_stack_bytes = 128 << 10;

}  // namespace cmt::remote_call
