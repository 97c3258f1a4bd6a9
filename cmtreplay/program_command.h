/// The command that runs a real program with several allocators (--command), beside the replay of its trace.
#pragma once

#include <optional>
#include <vector>

#include "cmtreplay/options.h"
#include "cmtreplay/tune/program_report.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::replay {

/// Runs the program of --command in rounds, in each of them once with every allocator, in another order. The rows have
/// their runs only. Throws Interrupted.
ProgramReport run_in_rounds(const Options& options, const std::vector<Allocator>& allocators,
                            const command::Interrupts& interrupts, terminal::LiveView& line);

/// Runs the program, replays the trace if there is one, and prints the report. Returns the exit status.
int run_program_command(const Options& options, std::optional<command::Interrupts>& interrupts);

}  // namespace cmt::replay
