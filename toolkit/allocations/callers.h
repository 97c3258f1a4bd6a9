#pragma once

#include "toolkit/allocations/contributors.h"

namespace cmt::allocations {

/// Adds the tree of callers to each of the contributors, which are of functions: who called the function with what
/// share of its own allocations, who called that, and so on. Callers below `options.min` of the total, by
/// `options.metric`, are left out, and not gone into. Memory: the stacks that have allocated; time: those, times the
/// levels of the trees.
void add_callers(std::vector<Contributor>& contributors, const StackTable& stacks, const Uses& uses, Labels& labels,
                 const ContributorOptions& options);

}  // namespace cmt::allocations
