/// Stops all threads of processes for the time of a measurement, so that the processes do not see it.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "toolkit/output/fields.h"
#include "toolkit/process/stopping/interrupted_calls.h"

namespace cmt::watch {

/// A process may not be stopped; the message has the reason: another process traces it, or it is another user's.
struct PauseRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws PauseRefused if `root` is of another machine, because its pids name other processes here.
void check_pausable(int pid, const std::string& root);

/// Processes of which all threads are stopped. It exists only within while_paused().
class Pause {
 public:
  /// Borrows `calls`, those that earlier pauses of the same processes have interrupted.
  explicit Pause(process::InterruptedCalls& calls) : calls_(calls) {}

  /// Stops the processes that `pids` returns. `pids` is called again until no new thread turns up, because a process
  /// that still ran may have started more. This process and processes that end meanwhile are left out. Throws
  /// PauseRefused if a process of `must` may not be stopped; others are counted.
  void stop_all(const std::function<std::vector<int>()>& pids, const std::set<int>& must);

  /// How many processes may not be stopped, or have a thread that did not stop. Such a thread is in an uninterruptible
  /// system call, and does not run either.
  std::size_t not_paused() const { return not_paused_.size(); }

  /// When the first thread was stopped, by the monotonic clock; 0: none was.
  std::int64_t begin_ns() const { return begin_ns_; }

  /// Sees to the system calls of threads that have stopped after they were given up.
  void see_late_stops();

  /// Reaps threads that have ended, but not the first thread of a process. May be called from any thread.
  void reap_threads();

 private:
  struct Thread {
    int pid;
    int tid;
  };

  void stop(int pid);
  bool seize(const Thread& thread);
  bool has_settled(const Thread& thread);
  bool await_stops(std::int64_t inspect_after);
  bool awaits_runner();

  process::InterruptedCalls& calls_;
  std::set<int> known_;  ///< threads that need not be seized
  std::set<int> not_paused_;
  std::vector<Thread> awaited_;
  std::vector<Thread> late_;  ///< given up: they did not stop in time
  std::int64_t begin_ns_ = 0;
  std::mutex mutex_;
  std::vector<Thread> seized_;  ///< only the tracing thread changes it, under the mutex
};

/// Calls `measure`, which may stop processes. They go on when it returns or throws, and also when this process is
/// killed. Returns for how many nanoseconds the first thread was stopped. `measure` runs on a thread of its own. It
/// must not wait for a process that it stopped, so it may not write to a terminal or a pipe. System calls that the
/// pause interrupts begin anew; `calls` is the same for all pauses of a process.
std::int64_t while_paused(process::InterruptedCalls& calls, const std::function<void(Pause&)>& measure);

/// For how long processes were stopped, over all pauses.
struct PauseCost {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t max_ns = 0;

  void add(std::int64_t paused_ns);
  /// "paused 3 times, 812 us in all, 300 us at most".
  std::string text() const;
};

template <class Visitor, output::DescribedAs<PauseCost> Cost>
void describe(Visitor& field, Cost& cost) {
  field("paused_ns", cost.total_ns, "for so long processes were stopped, over all samples");
  field("paused_ns_max", cost.max_ns, "the longest of these pauses");
}

}  // namespace cmt::watch
