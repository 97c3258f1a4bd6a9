/// Calls functions in a process that runs: finds a safe thread, makes the call on it, and adds up the cost.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>

#include "toolkit/remote_call/injected_call.h"
#include "toolkit/remote_call/safe_thread.h"
#include "toolkit/remote_call/system_filter.h"
#include "toolkit/remote_call/target.h"

namespace cmt::remote_call {

/// The cost of an attach for the program's threads: the longest times.
struct Pauses {
  std::chrono::nanoseconds stopped{};  ///< a thread was stopped
  std::chrono::nanoseconds kept{};     ///< a thread did our work instead of its own, times in which it was stopped too
};

/// Makes threads of a process call functions, each on a thread that is chosen for it.
class RemoteCaller {
 public:
  /// `ignores_filter`: a filter of system calls that cannot be read is taken for a harmless one.
  RemoteCaller(Target& target, bool ignores_filter)
      : target_(target), ignores_filter_(ignores_filter), threads_(target) {}

  struct Watch {
    std::function<bool()> is_done{};    ///< whether what the function is called for has been done
    std::function<void()> see = [] {};  ///< called often, while it has not
    bool is_traced = false;             ///< the thread is stopped at each system call, so that failures are seen
  };

  /// Reads the filters of system calls of all threads, because each recorded thread makes calls of ours. `touches`:
  /// touched pages of blocks are recorded. Throws Refused if a filter would end a thread for such a call, or
  /// cannot be read.
  void check_filters(bool touches);

  /// Returns when `is_done` is true, or when the function has returned without that. Throws Refused, ThreadGone,
  /// CallStuck.
  void call(const Call& wanted, const Watch& watch);

  /// Returns the first system call that failed in the last call with `is_traced`, among those by which a library is
  /// loaded.
  const std::string& failed() const { return failed_; }
  Pauses pauses() const;
  SafeThreads& threads() { return threads_; }

 private:
  class Patience;
  StoppedThread choose();
  std::string why_filter_forbids(const StoppedThread& thread, std::initializer_list<CallUse> uses) const;
  bool are_all_avoided() const;
  void see_failures(Injector& injector, const Watch& watch);
  void see_through(StoppedThread& thread, Injector& injector, const Watch& watch);
  void await_return(int tid, std::uint64_t frame, const Watch& watch);

  Target& target_;
  const bool ignores_filter_;
  SafeThreads threads_;
  std::set<int> avoided_;  ///< threads that have filters of their own, which forbid what is to be called
  Pauses pauses_;
  std::string failed_;
};

/// Throws Refused: "process 4711 (name) cannot be attached to: ...".
[[noreturn]] void refuse(const Target& target, const std::string& why);

}  // namespace cmt::remote_call
