/// One thread of another process while ptrace(2) stops it.
#pragma once

#include <sys/user.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "toolkit/process/stopping/thread_stop.h"
#include "toolkit/remote_call/unwind/unwind_rules.h"

namespace cmt::remote_call {

/// The process or the thread has ended, or calls exec.
struct ThreadGone : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A system call that a thread is about to make, or has made.
struct SystemCall {
  std::int64_t number = -1;  ///< -1 at its end
  bool is_end = false;
  std::int64_t result = 0;  ///< at its end; a negative errno: it has failed
  std::uint64_t stack_pointer = 0;
};

/// A thread of another process that was stopped by PTRACE_SEIZE and PTRACE_INTERRUPT. It goes on when this object is
/// destroyed, or when the thread that made the object ends, for whatever reason. No signal is seen or lost, and at
/// every stop a system call that was interrupted is seen to (toolkit/process/stopping/thread_stop.h).
///
/// All is to be called by one thread.
class StoppedThread {
 public:
  using Clock = std::chrono::steady_clock;

  /// Returns nullopt if the thread is gone, does not stop within a second, or was stopped by a signal. Throws
  /// std::system_error if it may not be traced. A thread that does not stop in time is added to `late`.
  static std::optional<StoppedThread> stop(int pid, int tid, process::InterruptedCalls& calls, std::vector<int>& late);
  /// The same without waiting: call has_stopped() until it returns true.
  static std::optional<StoppedThread> begin_stop(int pid, int tid, process::InterruptedCalls& calls);
  /// Whether it has stopped by now. Throws ThreadGone.
  bool has_stopped();

  /// Lets the late threads go on that have stopped by now, and removes them from the list.
  static void release_late(int pid, process::InterruptedCalls& calls, std::vector<int>& late);

  StoppedThread(StoppedThread&& other) noexcept;
  StoppedThread& operator=(StoppedThread&&) = delete;
  ~StoppedThread();

  int tid() const { return tid_; }
  /// When it was seen to run for the last time.
  Clock::time_point since() const { return since_; }

  /// Throw ThreadGone.
  user_regs_struct registers() const;
  void set_registers(const user_regs_struct& registers);
  /// The vector registers in the XSAVE format, as PTRACE_GETREGSET returns them.
  std::vector<char> extended_state() const;
  void set_extended_state(std::vector<char> state);
  std::uint64_t signal_mask() const;
  void set_signal_mask(std::uint64_t mask);
  /// Whether it has a filter of system calls (seccomp(2)); true if that is not known.
  bool has_filter() const;
  /// Whether it has been given a signal since its first stop.
  bool had_signal() const { return had_signal_; }
  /// Whether the kernel may move the thread's next instruction (rseq(2)); false if that is not known.
  bool is_in_restartable_sequence(std::uint64_t pc) const;

  /// Lets the thread go on to the begin or the end of its next system call. Signals reach it. Returns nullopt at
  /// `deadline`: the thread still runs then. Throws ThreadGone.
  std::optional<SystemCall> run_to_system_call(Clock::time_point deadline);

  /// Lets the thread go on until `is_enough`, which is called often, returns true, and stops it again. Returns false if
  /// it does not stop. Signals reach it. Throws ThreadGone.
  bool run_until(const std::function<bool()>& is_enough);

  /// Lets the thread finish the system call at whose begin it is stopped, and stops it before its next instruction.
  /// Returns false if that takes longer than until `deadline`.
  bool finish_system_call(Clock::time_point deadline);

  /// Lets the thread go on, and detaches it. Returns for how long it was stopped.
  std::chrono::nanoseconds release();

 private:
  StoppedThread(int pid, int tid, process::InterruptedCalls& calls)
      : pid_(pid), tid_(tid), calls_(&calls), since_(Clock::now()) {}
  process::ThreadStop look() const;
  bool await_own_stop(Clock::time_point deadline);
  process::ThreadStop await_stop(Clock::time_point deadline);
  void go_on(const process::ThreadStop& stop, int request);
  void detach();

  int pid_, tid_;
  process::InterruptedCalls* calls_;
  Clock::time_point since_;
  bool is_seized_ = true, has_stopped_ = false, runs_ = true, had_signal_ = false;
};

/// Does work on a thread of its own. After its end, no thread that it has stopped is stopped or traced any more, not
/// even one that did not stop in time.
void as_tracer(const std::function<void()>& work);

/// Sleeps until a thread that is traced here may have stopped or ended, or for so long, which is less than a second.
void await_notice(std::chrono::nanoseconds at_most);

FrameRegisters frame_registers(const user_regs_struct& registers);

}  // namespace cmt::remote_call
