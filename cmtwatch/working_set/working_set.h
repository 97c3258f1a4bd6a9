/// Measures the working set of a process, interval after interval.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "cmtwatch/sample/pause.h"
#include "cmtwatch/sample/sampling.h"
#include "cmtwatch/working_set/touch_meter.h"
#include "toolkit/process/proc_file.h"

namespace cmt::watch {

/// The working set of one interval: the memory that was touched. Times are nanoseconds since the first marking began.
struct WorkingSet {
  std::int64_t begin_ns = 0;    ///< all pages were marked
  std::int64_t end_ns = 0;      ///< reading began
  std::int64_t reading_ns = 0;  ///< the time that reading took: memory that is touched meanwhile may or may not count
  std::int64_t marking_ns = 0;  ///< the same of marking, before begin_ns
  std::int64_t paused_ns = 0;   ///< for so long the process was stopped at the end
  Touched touched;

  std::int64_t length_ns() const { return end_ns - begin_ns; }
  std::uint64_t pages() const;
};

/// The options of `wss`.
struct WssOptions : SamplingOptions {
  TouchTarget target;
  std::optional<TouchMethod> method{};  ///< nullopt: idle if it works, else referenced
};

/// The method that is used.
struct WssMethod {
  TouchMethod method = TouchMethod::idle;
  std::string obstacle;  ///< the reason why it is not idle; empty: it is, or was not asked for
};

/// Throws std::runtime_error if no method works, or the requested one does not.
WssMethod choose_method(const WssOptions& options);

/// Held while a process is measured, so that no second cmtwatch takes its marks away: they lock the same file. Throws
/// std::runtime_error if another one holds it.
process::Fd lock_marks(const TouchTarget& target);

/// The course of a measurement.
struct WorkingSetRun : SamplingCost {
  bool gone = false;  ///< the process has ended
  PauseCost pauses{};
  std::exception_ptr failure;  ///< ended the measurement early
};

/// Measures interval after interval until the pace says that it is enough, the process ends, or a signal comes. Reading
/// ends an interval, and marking right after it begins the next.
WorkingSetRun measure_working_sets(const WssOptions& options, TouchMeter& meter,
                                   const std::function<void(const WorkingSet&)>& take);

}  // namespace cmt::watch
