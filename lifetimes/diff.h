#pragma once

#include <string>

#include "lifetimes/by_stack.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::lifetimes {

/// Prints what changed from the trace `before` to that of `options`. Both are read at the same time, by two threads.
/// Throws FormatError where one has no stacks and these are asked for.
void report_difference(const std::string& before, const trace::Options& options, const StackOptions& stack_options);

}  // namespace cmt::lifetimes
