#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmtreplay/shared_memory.h"

namespace cmt::replay {

/// What the processor counts.
inline constexpr std::array<std::string_view, 5> counter_names{"instructions", "cycles", "cache_misses",
                                                               "l1_data_misses", "data_tlb_misses"};

/// One run's counts, in the order of counter_names; nothing where this one is not to be had.
using CounterValues = std::array<std::optional<std::uint64_t>, counter_names.size()>;

/// The hardware counters of a process and all threads that it will start, in user mode. Many machines have none to
/// give: virtual ones, and those that forbid it (kernel.perf_event_paranoid).
class Counters {
 public:
  explicit Counters(pid_t pid);

  void start() const;
  /// Counts since the start. Those for which the processor had no register all the time are scaled.
  CounterValues stop() const;

  /// Why there are none at all; empty where there are some.
  const std::string& missing() const { return missing_; }

 private:
  std::array<Fd, counter_names.size()> fds_;
  std::string missing_;
};

}  // namespace cmt::replay
