/// Writes the stacks of a trace as JSON for speedscope.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "analysis/fates/use.h"
#include "cmt/stacks.h"

namespace cmt::lifetimes {

/// Calls `write` with pieces of a file in speedscope's JSON form. It has a sampled profile for each of these measures:
///
/// - bytes live at the peak, bytes allocated, bytes live at the end;
/// - blocks allocated, temporary blocks.
///
/// A sample is a stack of functions, the outermost first, and its weight. Stacks that differ only in addresses are one
/// sample. The sums of the weights are the totals of `uses`. Functions that match `hidden`, an extended regular
/// expression, are left out. `name` is that of the trace. Memory: that of a FunctionTree, not that of the file.
void write_speedscope(const StackTable& stacks, const analysis::Uses& uses, const std::string& hidden,
                      const std::string& name, const std::function<void(std::string_view)>& write);

}  // namespace cmt::lifetimes
