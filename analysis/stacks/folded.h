/// Writes stacks as lines for flame graph tools (lifetimes --folded).
#pragma once

#include <functional>
#include <string>

#include "analysis/fates/use.h"
#include "analysis/stacks/labels.h"

namespace cmt::analysis {

/// Calls `write` with pieces of folded stacks, the input of flame graph tools: a line for each stack, the outermost
/// function first, with a figure. Stacks of the same functions are one line. Lines whose figure is 0 or negative are
/// left out. So are functions that match `hidden`, an extended regular expression.
///
///     main;parse;list::push(int) 4096
///
/// A semicolon in a name becomes a colon. The lines are in the order of the names. A stack of more than 1024 functions,
/// or a line of more than 256 KiB, ends with "[deeper]", for all functions further inside.
void write_folded(const StackTable& stacks, const Uses& uses, Metric metric, const std::string& hidden,
                  const std::function<void(const std::string&)>& write);

}  // namespace cmt::analysis
