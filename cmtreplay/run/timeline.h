#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cmtreplay/plan/shared_memory.h"

namespace cmt::replay {

/// Resident memory at a moment between two marks.
struct TimelineSample {
  std::uint64_t clock_ns = 0;  ///< since the first operation; stops at marks are left out
  std::uint64_t event = 0;     ///< of the mark before: so many events had passed at least
  std::uint64_t resident_bytes = 0;
};

/// Looks at a worker by statm a hundred times a second, from a thread of its own: some 10 us each, and the worker is
/// not stopped for it. The kernel's counters behind statm may be some tens of pages late. Of a long run it keeps at
/// most 8,192 samples: when there are more, every other one goes, and it looks half as often.
class Timeline {
 public:
  /// Of a worker that stands. `root` lets a fixture stand in for /proc.
  explicit Timeline(int pid, const std::string& root = "/proc");
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Samples are taken between the two. `event`: that the worker starts from.
  void go(std::uint64_t event);
  void stop();

  /// Between go() and stop() in all.
  std::uint64_t clock_ns() const { return static_cast<std::uint64_t>(gone_.count()); }
  /// What was sampled, after the last stop(); its resident bytes are above those of the start.
  const std::vector<TimelineSample>& samples() const { return samples_; }
  /// What the sampling took of a CPU.
  std::uint64_t cpu_ns() const { return cpu_ns_; }

 private:
  using Clock = std::chrono::steady_clock;

  void sample_now_and_then();
  std::uint64_t resident_bytes();
  void keep(const TimelineSample& sample);

  Fd statm_;
  std::string text_;
  std::uint64_t resident_before_;
  std::vector<TimelineSample> samples_;
  Clock::duration distance_ = std::chrono::milliseconds(10);
  Clock::duration gone_{};
  Clock::time_point went_;
  std::uint64_t event_ = 0;
  std::uint64_t cpu_ns_ = 0;
  bool going_ = false;
  bool ends_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace cmt::replay
