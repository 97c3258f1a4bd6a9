#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lifetimes/exports.h"
#include "toolkit/allocations/contributors.h"
#include "toolkit/annotate/trace_tool.h"

namespace cmt::lifetimes {

/// What is asked of the allocations of a trace.
struct StackOptions {
  allocations::ContributorOptions contributors;
  ExportOptions exported{};  ///< for another tool, rather than contributors
  std::optional<annotate::SliceRange> slice{};
  std::vector<std::string> debug_directories{};
};

/// The options of --by and of the forms for other tools. Throws UsageError.
StackOptions parse_stack_options(const command::CommandLine& line);

/// Counts what each stack, or other set, has allocated, from the whole trace or the slice.
allocations::Uses count_uses(annotate::Trace& trace, const allocations::UseOptions& options, const std::string& path);

/// Prints the contributors or the folded stacks of the trace that the options name, or writes the file of another tool.
/// Throws FormatError where it has no stacks.
void report_stacks(const annotate::Options& options, const StackOptions& stack_options);

}  // namespace cmt::lifetimes
