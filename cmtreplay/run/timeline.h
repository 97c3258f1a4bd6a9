/// Samples a worker's resident memory between marks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "cmtreplay/plan/shared_memory.h"
#include "toolkit/output/fields.h"

namespace cmt::replay {

/// Resident memory at a moment between two marks.
struct TimelineSample {
  std::uint64_t clock_ns = 0;
  std::uint64_t event = 0;
  std::uint64_t resident_bytes = 0;
};

template <class Visitor, output::DescribedAs<TimelineSample> Sample>
void describe(Visitor& field, Sample& sample) {
  field("clock_ns", sample.clock_ns, "since the first operation, without the stops at marks");
  field("event", sample.event, "the event of the mark before");
  field("resident_bytes", sample.resident_bytes, "of the allocator alone, by statm");
}

/// Samples a worker's resident memory a hundred times a second, from a thread of its own. A sample reads statm, which
/// takes some 10 us and does not stop the worker. The kernel's counters there may be some tens of pages late. It keeps
/// at most 8,192 samples: when there are more it drops every other one, and samples half as often.
class Timeline {
 public:
  /// Called while the worker is stopped. `start_bytes`: the allocator's memory now. `root` replaces /proc in tests.
  Timeline(int pid, std::uint64_t start_bytes, const std::string& root = "/proc");

  /// Samples are taken between the two calls. `event`: the last event before the worker resumes.
  void resume(std::uint64_t event);
  void pause();

  /// The sum of the times between resume() and pause().
  std::uint64_t clock_ns() const { return static_cast<std::uint64_t>(elapsed_.count()); }
  /// Only after the last pause().
  const std::vector<TimelineSample>& samples() const { return samples_; }
  /// CPU time of the sampling.
  std::uint64_t cpu_ns() const { return cpu_ns_; }

 private:
  using Clock = std::chrono::steady_clock;

  void run_sampler(const std::stop_token& stop);
  std::uint64_t resident_bytes();
  void add_sample(const TimelineSample& sample);

  Fd statm_;
  std::string text_;
  std::uint64_t start_bytes_, resident_before_;
  std::vector<TimelineSample> samples_;
  Clock::duration distance_ = std::chrono::milliseconds(10);
  Clock::duration elapsed_{};
  Clock::time_point resumed_at_;
  std::uint64_t event_ = 0;
  std::uint64_t cpu_ns_ = 0;
  bool is_running_ = false;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;  ///< ends before the members above
};

}  // namespace cmt::replay
