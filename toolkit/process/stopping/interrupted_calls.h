/// Hides from a program that its system calls were interrupted when ptrace(2) stopped it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace cmt::process {

/// The system calls that a stop by ptrace(2) interrupts. look_at() in thread_stop.h uses it at each stop.
///
/// Most calls go on by themselves, with the rest of their time. Some end with EINTR without a signal, as after SIGSTOP
/// (signal(7), "Interruption of system calls and library functions by stop signals"):
///
///     epoll_wait, semop, sigtimedwait, io_getevents, io_uring_enter, and calls on a socket with a timeout
///
/// A program that does not expect EINTR fails because it is watched. So this class changes the result to the kernel's
/// own code for "begin anew, unless a signal handler is to run". With a handler the program gets EINTR, as without us.
/// The change is one write of the registers: if we are killed before or after it, nothing is half done.
///
/// A call with a timeout waits for all of its timeout again, because the kernel does not report when it began. A
/// register with the timeout could be changed, but it would remain changed in the program after the call. With frequent
/// pauses the call would never end. So it begins anew only until its timeout has passed since the first time. Then it
/// gets the result of a timeout. Two stops are in the same call if the registers are equal and the thread has not been
/// switched away in between, except by our stop.
///
/// Two kinds of calls cannot be mended, and return less than without the stop, as after SIGSTOP:
///
///  - A call that had already transferred a part of its data returns the size of the part. Examples: write to a pipe
///    or a socket, recv with MSG_WAITALL, recvmmsg.
///  - io_uring_enter that had submitted entries returns their number and does not wait.
///
/// On x86-64 only. Elsewhere the kernel decides before it stops.
class InterruptedCalls {
 public:
  /// To be called by the tracer of a thread that has stopped, once or more. Leaves a call alone whose timeout is not
  /// known.
  void begin_anew(int pid, int tid);

 private:
  /// Distinguishes a call from others of its thread.
  struct Call {
    std::array<std::uint64_t, 15> registers{};  ///< number, arguments, instruction, stack, the function's own
    std::uint64_t switches = 0;                 ///< of the thread, voluntary ones
    std::int64_t interrupted_ns = 0;            ///< for the first time
  };

  /// Whether a call may wait so long again.
  bool may_wait(int tid, const Call& call, std::int64_t timeout_ns);

  std::map<int, Call> timed_calls_;  // by thread, the last that began anew
};

/// A system call that a thread waits in, as /proc/PID/task/TID/syscall reports it without stopping the thread.
struct WaitingCall {
  std::int64_t number = 0;
  std::array<std::uint64_t, 6> arguments{};
  std::uint64_t stack_pointer = 0, instruction = 0;

  bool operator==(const WaitingCall&) const = default;
};

/// Returns nothing for a text of a thread that runs, or waits outside of a call.
std::optional<WaitingCall> parse_waiting_call(std::string_view text);
/// Returns nothing also for a thread that is another user's, or gone.
std::optional<WaitingCall> read_waiting_call(int pid, int tid);

/// Whether a stop may change what the call does: it may wait longer, or return less. False if it goes on exactly. A
/// caller that has a choice stops another thread. On x86-64 only; else true.
bool may_be_disturbed(const WaitingCall& call);

}  // namespace cmt::process
