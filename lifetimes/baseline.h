#pragma once

#include "toolkit/annotate/trace_tool.h"
#include "toolkit/command/command_line.h"

namespace cmt::lifetimes {

/// Throws UsageError where the options of --baseline do not go with the others.
void refuse_baseline_options(const command::CommandLine& line);

/// Compares the trace that the options name with that of --baseline, a trace or a summary in JSON. Prints a line for
/// each figure, and where both are traces with call stacks and a figure is worse, what changed by function. Returns the
/// exit status: 3 where a figure is worse by more than --fail-if allows.
int judge_by_baseline(const annotate::Options& options, const command::CommandLine& line);

}  // namespace cmt::lifetimes
