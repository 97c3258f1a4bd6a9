/// Calls functions in a process that runs: finds a safe thread, makes the call on it, and adds up the cost.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "toolkit/remote_call/injected_call.h"
#include "toolkit/remote_call/safe_thread.h"
#include "toolkit/remote_call/system_filter.h"
#include "toolkit/remote_call/target.h"

namespace cmt::remote_call {

/// The cost of calls for the program's threads: the longest times.
struct Pauses {
  std::chrono::nanoseconds stopped{};  ///< a thread was stopped
  std::chrono::nanoseconds kept{};     ///< a thread did our work instead of its own, times in which it was stopped too
};

/// Which filters of system calls (seccomp) keep a thread from being chosen.
struct FilterRules {
  std::vector<CallUse> uses{CallUse::load, CallUse::record};  ///< the system calls of the functions to be called
  bool ignores_unread = false;  ///< a filter that cannot be read is taken for a harmless one
  std::string unread_remedy = "CAP_SYS_ADMIN is needed (run this as root)";
};

struct CallingThread {
  int tid = 0;
  std::uint64_t pointer = 0;  ///< its register fs
};

/// Makes threads of a process call functions, each on a thread that is chosen for it. To be used within as_tracer().
class RemoteCaller {
 public:
  RemoteCaller(Target& target, FilterRules rules) : target_(target), rules_(std::move(rules)), threads_(target) {}

  struct Watch {
    /// Whether the function has done its work. Empty: it may take long, and the call ends with the function. A thread
    /// that waits in the kernel again has returned from it. Any other thread is looked at after 20 ms, 60 ms, 140 ms...
    std::function<bool()> is_done{};
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

  /// Makes one thread make several calls, one after the other. `see_bytes` gets the number of each call that has
  /// returned, and its bytes as the function has left them; no bytes if they cannot be read. The thread is stopped at
  /// each system call, so this is for functions that make few. Throws as call().
  void call_in_turn(std::span<const Call> calls, const std::function<void(std::size_t, const std::string&)>& see_bytes);

  /// Returns the first system call that failed in the last call with `is_traced`, among those by which a library is
  /// loaded.
  const std::string& failed() const { return failed_; }
  Pauses pauses() const;
  /// The thread that made the last call, which may have ended since.
  CallingThread calling_thread() const { return calling_thread_; }
  SafeThreads& threads() { return threads_; }

 private:
  class Patience;
  StoppedThread choose(bool is_long);
  std::string why_filter_forbids(const StoppedThread& thread, const std::vector<CallUse>& uses) const;
  bool are_all_avoided() const;
  void see_failures(Injector& injector, const Watch& watch);
  bool waits_outside(int tid, std::uint64_t frame) const;
  void see_through(StoppedThread& thread, Injector& injector, const Watch& watch);
  void await_return(int tid, std::uint64_t frame, const Watch& watch);

  Target& target_;
  const FilterRules rules_;
  SafeThreads threads_;
  std::set<int> avoided_;  ///< threads that have filters of their own, which forbid what is to be called
  Pauses pauses_;
  CallingThread calling_thread_;
  std::string failed_;
};

/// Throws Refused: "process 4711 (name) cannot be attached to: ...".
[[noreturn]] void refuse(const Target& target, const std::string& why);

}  // namespace cmt::remote_call
