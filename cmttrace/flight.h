/// Flight recorders (--keep): checks the option, and asks for a file of the last events while the command runs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "toolkit/command/command_line.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/launch/launch.h"
#include "toolkit/launch/trace_status.h"

namespace cmt::trace_launcher {

/// Returns the value of --keep in the form of CMTTRACE_KEEP. Throws UsageError if it is malformed, or contradicts other
/// options.
std::string flight_limits_for_tracer(const command::CommandLine& line);

/// Does the same with --keep-at and CMTTRACE_KEEP_AT.
std::string memory_mark_for_tracer(const command::CommandLine& line);

/// Passes SIGUSR1 on to the collectors, each of which then writes a file of its kept events. Reports the files that
/// they have written, also those that a command through a FIFO asked for.
class FlightFiles {
 public:
  /// From now on SIGUSR1 does not end this process. Call it before the command is started; the command does not inherit
  /// the effect.
  explicit FlightFiles(const launch::TraceStatusFile& traces);

  /// Waits for the end of a command that was started afterwards.
  launch::Ended wait(launch::RunningCommand& launched);

  /// The same for a process that was not started here: call it now and then. `is_asked`: SIGUSR1 has come.
  void look(bool is_asked);

 private:
  void ask_collectors() const;
  void report_new();

  const launch::TraceStatusFile& traces_;
  std::map<std::pair<int, std::uint64_t>, std::size_t> reported_;  // by process and start: so many of its files
  std::set<std::pair<int, std::uint64_t>> watched_;                // recordings whose watched memory was reported
};

}  // namespace cmt::trace_launcher
