/// Hides from a program that its system calls were interrupted when ptrace(2) stopped it.
#pragma once

#include <array>
#include <cstdint>
#include <map>

namespace cmt::process {

/// The system calls that a stop by ptrace(2) interrupts, as a pause of cmtwatch does.
///
/// Most calls go on by themselves. Some end with EINTR without a signal, as after SIGSTOP (signal(7), "Interruption of
/// system calls and library functions by stop signals"):
///
///     epoll_wait, semop, sigtimedwait, io_getevents, io_uring_enter, and calls on a socket with a timeout
///
/// A program that does not expect EINTR fails because it is watched. So this class changes the result to the kernel's
/// own code for "begin anew, unless a signal handler is to run". With a handler the program gets EINTR, as without us.
/// The change is one write of the registers: if we are killed before or after it, nothing is half done.
///
/// A call with a timeout waits for all of its timeout again. With frequent pauses it would never end. So it begins anew
/// only until its timeout has passed since the first time, and gets EINTR then. Two stops are in the same call if the
/// registers are equal and the thread has not been switched away in between, except by our stop.
///
/// On x86-64 only. Elsewhere the kernel decides before it stops.
class InterruptedCalls {
 public:
  /// To be called by the tracer of a thread that has stopped. Leaves a call alone whose timeout is not known.
  void begin_anew(int pid, int tid);

 private:
  /// Distinguishes a call from others of its thread.
  struct Call {
    std::array<std::uint64_t, 9> registers{};  ///< number, arguments, instruction, stack
    std::uint64_t switches = 0;                ///< of the thread, voluntary ones
    std::int64_t interrupted_ns = 0;           ///< for the first time
  };

  /// Whether a call may wait so long again.
  bool may_wait(int tid, const Call& call, std::int64_t timeout_ns);

  std::map<int, Call> timed_calls_;  // by thread, the last that began anew
};

}  // namespace cmt::process
