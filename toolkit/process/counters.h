/// Hardware counters of a thread and its heirs. The kernel may have fewer registers than counters, and may forbid all.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "toolkit/process/proc_file.h"

namespace cmt::process {

/// The hardware counters that are read.
inline constexpr std::array<std::string_view, 5> counter_names{"instructions", "cycles", "cache_misses",
                                                               "l1_data_misses", "data_tlb_misses"};

/// Counts in the order of counter_names; nothing for a counter that this machine does not give.
using CounterValues = std::array<std::optional<std::uint64_t>, counter_names.size()>;

/// The hardware counters of a thread and of those that it starts from now on, in user mode. Many machines give none:
/// virtual ones, and those where kernel.perf_event_paranoid forbids it.
class Counters {
 public:
  /// Adds the counts of all threads and processes that the thread starts to its own, or those of threads alone.
  enum class Heirs { all, threads };

  explicit Counters(pid_t thread, Heirs heirs = Heirs::all);

  void start() const;
  /// Counts since the start, scaled up where the processor had a register for a counter only part of the time.
  CounterValues read() const;
  CounterValues stop() const;

  /// Why no counter could be opened; empty where some could.
  std::string missing() const;
  /// The same as an errno, or 0. ESRCH: the thread is gone.
  int error() const { return error_; }

 private:
  std::array<Fd, counter_names.size()> fds_;
  int error_ = 0;
};

}  // namespace cmt::process
