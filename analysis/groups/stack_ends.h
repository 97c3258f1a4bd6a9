/// Shortens deep stacks for reports: keeps 40 inner and 10 outer functions.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/groups/group.h"

namespace cmt::analysis {

/// The most functions of a stack that a report contains, at either end. Without a bound, a report of many deep stacks
/// would grow with the square of their depth.
inline constexpr std::size_t inner_lines_max = 40, outer_lines_max = 10;

/// Returns both ends of stacks, as lines. The time for a stack depends on the lines that are kept, not on its depth.
class StackEnds {
 public:
  /// Borrows `stacks`.
  explicit StackEnds(const StackTable& stacks);

  /// Returns the lines, the innermost function first, and in `left_out` the number of lines between the ends.
  std::vector<StackLine> lines(StackId stack, std::uint64_t& left_out) const;

 private:
  std::vector<StackLine> lines_of(StackId stack, std::uint64_t count) const;

  const StackTable& stacks_;
  std::vector<std::uint64_t> depths_;  // in lines, by node
  std::vector<StackId> ends_;          // by node: the node of its path at which the outer lines are complete
};

}  // namespace cmt::analysis
