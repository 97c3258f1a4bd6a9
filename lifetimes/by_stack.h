/// lifetimes --by, and the counts of stacks for other tools.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/stacks/contributors.h"
#include "analysis/stacks/named_stacks.h"
#include "lifetimes/exports/exports.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::lifetimes {

/// How the allocations of a trace are counted and reported.
struct StackOptions {
  analysis::ContributorOptions contributors;
  ExportOptions exported{};  ///< a file for another tool, instead of contributors
  std::optional<trace::SliceRange> slice{};
  std::vector<std::string> debug_directories{};
};

/// Returns the options of --by and of the forms for other tools. Throws UsageError.
StackOptions parse_stack_options(const command::CommandLine& line);

/// Counts the allocations of each stack, or other set, in the whole trace or the slice.
analysis::Uses count_uses(trace::Trace& trace, const analysis::UseOptions& options, const std::string& path);

/// Names the stacks of a trace that was read, and keeps in `uses` those that `asked` chooses. Returns the stacks as
/// they are shown. Throws FormatError if the trace has none.
analysis::ShownStacks name_uses(analysis::Uses& uses, const trace::Trace& trace, const trace::Options& options,
                                const analysis::ContributorOptions& asked, const analysis::NamedStacksOptions& naming);

/// Prints the contributors or the folded stacks of the trace that the options name, or writes a file for another tool.
/// Throws FormatError if the trace has no stacks and these are needed.
void report_stacks(const trace::Options& options, const StackOptions& stack_options);

}  // namespace cmt::lifetimes
