/// The command that runs a real program with several allocators (--command), beside the replay of its trace.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "cmtreplay/options.h"
#include "cmtreplay/tune/program_report.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::replay {

/// Runs the program of --command in rounds, in each of them once with every allocator, in another order. After three
/// rounds it stops when `seconds` have passed. The rows have their runs only. Throws Interrupted.
ProgramReport run_in_rounds(const Options& options, const std::vector<Allocator>& allocators,
                            const command::Interrupts& interrupts, terminal::LiveView& line,
                            double seconds = std::numeric_limits<double>::infinity());

/// The time from the start of the recording to the last event of the trace. Empty if it has no times, or if the program
/// is a server, which is not busy all the time.
std::optional<std::uint64_t> recorded_ns(const Options& options);

/// Runs the program, replays the trace if there is one, and prints the report. Returns the exit status.
int run_program_command(const Options& options, std::optional<command::Interrupts>& interrupts);

}  // namespace cmt::replay
