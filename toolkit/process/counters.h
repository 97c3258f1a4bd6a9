#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/process/fd.h"

namespace cmt::process {

/// What the processor counts.
inline constexpr std::array<std::string_view, 5> counter_names{"instructions", "cycles", "cache_misses",
                                                               "l1_data_misses", "data_tlb_misses"};

/// One run's counts, in the order of counter_names; nothing where this one is not to be had.
using CounterValues = std::array<std::optional<std::uint64_t>, counter_names.size()>;

/// The hardware counters of a thread and what it starts from now on, in user mode. Many machines have none to give:
/// virtual ones, and those that forbid it (kernel.perf_event_paranoid).
class Counters {
 public:
  /// Whose counts are added to the thread's: of all that it starts, or not of other processes.
  enum class Heirs { all, threads };

  explicit Counters(pid_t thread, Heirs heirs = Heirs::all);

  void start() const;
  /// Counts since the start. Those for which the processor had no register all the time are scaled.
  CounterValues read() const;
  CounterValues stop() const;

  /// Why there are none at all; empty where there are some.
  std::string missing() const;
  /// The same as an errno; 0 where there are some. ESRCH: the thread is gone.
  int error() const { return error_; }

 private:
  std::array<Fd, counter_names.size()> fds_;
  int error_ = 0;
};

}  // namespace cmt::process
