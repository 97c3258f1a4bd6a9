/// Finds a thread that may be made to call a function of the loader or the allocator. safe_thread.cpp has the rules.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "toolkit/remote_call/injected_call.h"
#include "toolkit/remote_call/stopped_thread.h"
#include "toolkit/remote_call/target.h"
#include "toolkit/remote_call/unwind/stack_walk.h"

namespace cmt::remote_call {

/// Why a thread cannot be made to call a function just now.
enum class Obstacle {
  none,
  loader,          ///< it is in the dynamic loader,
  allocator,       ///< in malloc,
  tracer,          ///< in libcmttrace,
  locked_call,     ///< in fork, pthread_create, exit or the like,
  signal_handler,  ///< in a signal handler,
  unknown_stack,   ///< on a stack that is not the one that libc gave it,
  little_stack,    ///< or has little of that left,
  sequence,        ///< in a restartable sequence (rseq(2)),
  state,           ///< in a state that could not be restored, as a system call that was interrupted before
};

/// Judges a thread that is stopped.
Obstacle find_obstacle(const Target& target, const StoppedThread& thread);

/// Whether a thread's stack has, or may have, a frame in libcmttrace: unknown frames are searched for anything that
/// looks like one.
bool is_in_tracer(const Target& target, const StoppedThread& thread);

/// Finds threads that can be made to call functions.
class SafeThreads {
 public:
  using Clock = StoppedThread::Clock;

  explicit SafeThreads(Target& target) : target_(target) {}

  /// Stops one thread after the other until one has no obstacle, and returns it stopped; others go on at once. Skips
  /// the threads in `avoided`. `is_long`: the function makes many system calls. Then threads that wait for a time are
  /// the last: only a stop at each system call keeps their time. Throws Refused if there is none until `deadline`, or
  /// none may be traced.
  StoppedThread choose(Clock::time_point deadline, const std::set<int>& avoided, bool is_long = false);

  /// Stops one thread, whatever it does. Returns nullopt if it is gone, or does not stop in time. Throws Refused.
  std::optional<StoppedThread> stop(int tid);
  void release(StoppedThread thread);

  /// Returns all threads that exist at one moment, or nullopt if threads come and go too fast until `deadline`.
  std::optional<std::vector<int>> list_all(Clock::time_point deadline) const;

  /// Waits until no thread is in libcmttrace. Each thread is stopped alone, and let go at once. Returns false if some
  /// still are there.
  bool await_none_in_tracer(Clock::time_point deadline);

  /// Whether an injected call is still on the stack of its thread; true also if that cannot be seen now.
  bool is_in_call(int tid, std::uint64_t frame);

  /// The longest time for which a thread was stopped that was not chosen.
  std::chrono::nanoseconds longest_stop() const { return longest_stop_; }

 private:
  void drop_outside(std::vector<int>& threads, Clock::time_point deadline);
  std::vector<int> threads_by_state(bool is_long) const;
  [[noreturn]] void refuse() const;

  Target& target_;
  process::InterruptedCalls calls_;
  std::vector<int> late_;
  std::map<Obstacle, unsigned> met_;
  std::chrono::nanoseconds longest_stop_{0};
};

}  // namespace cmt::remote_call
