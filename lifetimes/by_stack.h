#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/stacks/contributors.h"
#include "lifetimes/exports.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::lifetimes {

/// What is asked of the allocations of a trace.
struct StackOptions {
  analysis::ContributorOptions contributors;
  ExportOptions exported{};  ///< for another tool, rather than contributors
  std::optional<trace::SliceRange> slice{};
  std::vector<std::string> debug_directories{};
};

/// The options of --by and of the forms for other tools. Throws UsageError.
StackOptions parse_stack_options(const command::CommandLine& line);

/// Counts what each stack, or other set, has allocated, from the whole trace or the slice.
analysis::Uses count_uses(trace::Trace& trace, const analysis::UseOptions& options, const std::string& path);

/// Prints the contributors or the folded stacks of the trace that the options name, or writes the file of another tool.
/// Throws FormatError where it has no stacks.
void report_stacks(const trace::Options& options, const StackOptions& stack_options);

}  // namespace cmt::lifetimes
