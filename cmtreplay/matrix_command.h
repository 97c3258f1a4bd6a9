/// The commands for many traces: the matrix, its tasks, the scoreboard and the gate.
#pragma once

#include <optional>

#include "cmtreplay/options.h"
#include "toolkit/command/interrupts.h"

namespace cmt::replay {

/// Runs the command for many traces that the options ask for. Sets `interrupts` before the work begins. Returns the
/// exit status.
int run_matrix_command(const Options& options, std::optional<command::Interrupts>& interrupts);

}  // namespace cmt::replay
