#pragma once

#include <vector>

#include "cmt/stacks.h"
#include "toolkit/allocations/use.h"

namespace cmt::allocations {

/// The part of a table's tree that the stacks which have allocated are in. Node 0 is the root of all.
class StackTree {
 public:
  /// Borrows `stacks`.
  StackTree(const StackTable& stacks, const Uses& uses);

  bool has(StackId node) const { return node == 0 || is_used_[node]; }
  StackId first_child(StackId node) const { return first_child_[node]; }
  StackId next_sibling(StackId node) const { return next_sibling_[node]; }

  /// The frames of these nodes, each once.
  std::vector<FrameId> frames() const;

 private:
  const StackTable& stacks_;
  std::vector<bool> is_used_;
  std::vector<StackId> first_child_;   // 0: none
  std::vector<StackId> next_sibling_;  // by rising number; 0: none
};

}  // namespace cmt::allocations
