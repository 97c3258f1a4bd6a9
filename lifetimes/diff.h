/// lifetimes --diff.
#pragma once

#include <string>

#include "lifetimes/by_stack.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::lifetimes {

/// Prints the changes from the trace `before` to the trace of `options`. Two threads read both at the same time. Throws
/// FormatError if one has no stacks and these are needed.
void report_difference(const std::string& before, const trace::Options& options, const StackOptions& stack_options);

}  // namespace cmt::lifetimes
