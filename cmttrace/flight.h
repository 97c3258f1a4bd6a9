/// Recordings that keep their last events only (--keep): a file of them while the command runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "toolkit/command/command_line.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/launch/launch.h"
#include "toolkit/launch/trace_status.h"

namespace cmt::trace_launcher {

/// The value of --keep, as CMTTRACE_KEEP has it. Throws UsageError where it is none, or does not go with other options.
std::string flight_limits_for_tracer(const command::CommandLine& line);

/// Passes SIGUSR1 on to the collectors, each of which then writes a file of what it keeps, and says which files they
/// have written: also on a command that came through a FIFO.
class FlightFiles {
 public:
  /// From now on SIGUSR1 does not end this process. To be called before a command is started, which does not inherit
  /// that.
  explicit FlightFiles(const launch::TraceStatusFile& traces);

  /// Waits for the end of a command that was started after that.
  launch::Ended wait(launch::RunningCommand& launched);

  /// For a process that was not started here: to be called now and then. `is_asked`: SIGUSR1 has come.
  void look(bool is_asked);

 private:
  void ask_collectors() const;
  void tell_new();

  const launch::TraceStatusFile& traces_;
  std::map<std::pair<int, std::uint64_t>, std::size_t> told_;  // by process and start: so many of its files
};

}  // namespace cmt::trace_launcher
