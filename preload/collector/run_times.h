/// Measures how much the recorded program ran and waited, so that a replay knows how much slower the recording made it.
///
/// A program of 0.1 s may take 5 s while it is recorded on a busy machine. Then 20 s of sleep follow. The replay is to
/// scale the first part and to leave the sleep. So the recording is divided into stretches of 20 ms or more, each with
/// the time that threads ran, waited for a processor and waited for the recorder. Stretches without waiting become one.
///
/// The kernel has the times of each thread in /proc/PID/task/TID/schedstat, which is gone with the thread. Therefore a
/// thread adds what it has waited to Control::ended_wait_ns at its end. The process has a clock of its processor time.
/// A kernel without schedstat gives no stretches. doc/design/recorded_clock.md lists waits that are not covered.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "cmt/header.h"
#include "preload/collector/drain/ring_memory.h"
#include "preload/protocol.h"

namespace cmt::collector {

/// At most a few thousand stretches, whatever the length of the recording.
class StretchTable {
 public:
  static constexpr std::uint64_t stretch_ns_min = 20'000'000;
  static constexpr std::size_t count_max = 2048;

  /// Adds a stretch after those before. A stretch joins the one before if that is short, or if there was hardly any
  /// waiting in both.
  ///
  /// The kernel adds a wait for a processor when it is over. So `busy_ns` may be more than the stretch, by a part of
  /// the wait that was before it. The stretch then takes idle time from the end of those before. `held_each_ns`: the
  /// time for which each thread waited for the recorder, which is known at its end too.
  void add(RunStretch next, std::uint64_t held_each_ns = 0);
  const std::vector<RunStretch>& stretches() const { return stretches_; }

 private:
  void reach_back(RunStretch& next, std::uint64_t excess_ns);
  void join_pairs();

  std::vector<RunStretch> stretches_;
  std::uint64_t least_ns_ = stretch_ns_min;
};

/// The times that a thread has run and has waited for a processor, since its start.
struct ThreadTimes {
  std::uint64_t ran_ns = 0, waited_ns = 0;
};

/// Sums over the threads of a process, from one look to the next.
class ThreadSums {
 public:
  using Threads = std::map<int, ThreadTimes>;  ///< by the kernel's id

  /// Returns what happened since the look before. `ran_ns` is the process's processor time, and `ended_wait_ns` what
  /// threads had waited that have ended: both since the start. The first look returns the elapsed time only.
  RunStretch look(std::uint64_t elapsed_ns, const Threads& threads, std::uint64_t ran_ns, std::uint64_t ended_wait_ns);

 private:
  bool has_looked_ = false;
  Threads threads_;
  std::uint64_t ran_ns_ = 0, ended_wait_ns_ = 0;
  std::uint64_t owed_ns_ = 0;  // of threads that were read, and had reported the same as ended: to be taken off
};

/// Looks at the process of a session. Threads: any.
class RunTimes {
 public:
  explicit RunTimes(const RingMemory& memory);
  RunTimes(const RunTimes&) = delete;
  RunTimes& operator=(const RunTimes&) = delete;

  void look();
  /// The same, unless the last look was less than 20 ms ago, or than 256 times what it took.
  void look_if_due(std::uint64_t now_ns);
  /// Looks, and returns all stretches. Empty: the kernel does not say.
  std::vector<RunStretch> stretches();

 private:
  void look_locked();

  const RingMemory& memory_;
  std::mutex mutex_;
  ThreadSums sums_;
  StretchTable table_;
  std::uint64_t looked_ns_, due_ns_ = 0, ran_ns_ = 0, held_ns_ = 0;
};

}  // namespace cmt::collector
