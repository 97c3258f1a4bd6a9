#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace cmt::watch {

/// A process may not be stopped. Says why: another traces it, or we have no right to.
struct PauseRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws PauseRefused where `root` is not of this machine, so that its numbers name other processes here.
void check_pausable(int pid, const std::string& root);

/// Processes that are stopped while it lives, all their threads. Lives in while_paused() only.
class Pause {
 public:
  /// Stops the processes that `pids` names, which is asked again until no new thread turns up: one that still ran may
  /// have started more. Ourselves are left out, and who ends meanwhile. `must` are those whose refusal throws
  /// PauseRefused; others are counted.
  void stop_all(const std::function<std::vector<int>()>& pids, const std::set<int>& must);

  /// Of processes that refused, or of which a thread did not stop: one in the midst of a system call that cannot be
  /// interrupted, which does not run, either.
  std::size_t not_paused() const { return not_paused_.size(); }

  /// When the first was stopped, by the monotonic clock; 0: none was.
  std::int64_t begin_ns() const { return begin_ns_; }

  /// Lets go of threads that have ended; their processes' first threads are left. From any thread.
  void reap_threads();

 private:
  struct Thread {
    int pid;
    int tid;
  };

  void stop(int pid);
  bool seize(const Thread& thread);
  bool has_settled(const Thread& thread);
  void await();
  void give_up_hopeless(std::int64_t waited_ns);

  std::set<int> known_;  ///< threads that need not be seized
  std::set<int> not_paused_;
  std::vector<Thread> awaited_;
  std::int64_t begin_ns_ = 0;
  std::mutex mutex_;
  std::vector<Thread> seized_;  ///< changed by the tracer alone, under the mutex
};

/// Calls `measure`, which may stop processes. They go on when it is done or throws, and also when the kernel ends us.
/// Returns for how many nanoseconds the first was stopped. `measure` is called on a thread of its own, and must not
/// wait for those whom it stopped: no writing to a terminal or a pipe.
std::int64_t while_paused(const std::function<void(Pause&)>& measure);

/// What the pauses of a watch cost those that were stopped.
struct PauseCost {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t max_ns = 0;

  void add(std::int64_t paused_ns);
  /// "paused 3 times, 812 us in all, 300 us at most".
  std::string text() const;
};

}  // namespace cmt::watch
