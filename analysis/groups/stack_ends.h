#pragma once

#include <cstdint>
#include <vector>

#include "analysis/groups/group.h"

namespace cmt::analysis {

/// How many functions of a stack are kept, of a deep one: a report of many would else be as large as their square.
inline constexpr std::size_t inner_lines_max = 40, outer_lines_max = 10;

/// Both ends of stacks, as lines. Time of each: by the lines that are kept, however deep it is.
class StackEnds {
 public:
  /// Borrows `stacks`.
  explicit StackEnds(const StackTable& stacks);

  /// The innermost function first. `left_out`: how many between the ends.
  std::vector<StackLine> lines(StackId stack, std::uint64_t& left_out) const;

 private:
  std::vector<StackLine> lines_of(StackId stack, std::uint64_t count) const;

  const StackTable& stacks_;
  std::vector<std::uint64_t> depths_;  // in lines, by node
  std::vector<StackId> ends_;          // by node: the one of its path with which the outer lines are whole
};

}  // namespace cmt::analysis
