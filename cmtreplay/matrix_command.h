/// The commands for many traces: the matrix, its tasks, the scoreboard and the gate.
#pragma once

#include "cmtreplay/options.h"

namespace cmt::replay {

/// Runs the command for many traces that the options ask for. Returns the exit status.
int run_matrix_command(const Options& options);

}  // namespace cmt::replay
