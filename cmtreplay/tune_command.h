/// The command that searches allocators and their settings for a program, on its traces (--tune).
#pragma once

#include <optional>

#include "cmtreplay/options.h"
#include "toolkit/command/interrupts.h"

namespace cmt::replay {

/// Runs the search that the options ask for. Sets `interrupts` before the work begins. Returns the exit status.
int run_tune_command(const Options& options, std::optional<command::Interrupts>& interrupts);

}  // namespace cmt::replay
