#pragma once

#include "cmt/stacks.h"
#include "toolkit/allocations/use.h"

namespace cmt::allocations {

/// The uses of those stacks that have a function which matches `focus`, and none which matches `ignored`: extended
/// regular expressions, compared with names of functions, of source files and of libraries. Empty: all, and none.
Uses select_stacks(Uses uses, const StackTable& stacks, const std::string& focus, const std::string& ignored);

}  // namespace cmt::allocations
