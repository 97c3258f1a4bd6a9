#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace cmt::watch {

/// The system calls that a pause interrupts.
///
/// Most go on by themselves. Some end with EINTR though no signal has come, as after SIGSTOP (signal(7), "Interruption
/// of system calls and library functions by stop signals"): epoll_wait, semop, sigtimedwait, io_getevents,
/// io_uring_enter, and those on a socket with a timeout. A program that does not expect that fails for having been
/// watched. So their result is changed to the kernel's own code for "begin anew, unless a signal handler is to run"; if
/// one is, the program gets EINTR, as without us. It is one change of the registers: if we are killed before or after
/// it, nothing is half done.
///
/// A call with a timeout waits for all of it again. Where a thread is paused anew before the timeout of the call that
/// began anew could pass, it is left with EINTR: else it would never end. So such a call takes twice its time at most.
///
/// On x86-64 only. Elsewhere the kernel decides before it stops.
class InterruptedCalls {
 public:
  /// To be called by the tracer of a thread that has stopped. What cannot be told is left as it is.
  void begin_anew(int pid, int tid);

 private:
  /// Whether the thread may wait so long again; nothing: there is no timeout.
  bool may_wait(int tid, std::optional<std::int64_t> timeout_ns);

  std::map<int, std::int64_t> began_anew_ns_;  // by thread: when its last call with a timeout did
};

}  // namespace cmt::watch
