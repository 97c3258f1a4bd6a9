/// The tree of the stacks that have allocated, for walks from the root to the leaves.
#pragma once

#include <vector>

#include "cmt/stacks.h"

namespace cmt::analysis {

/// The part of a table's tree with the stacks that have allocated. Node 0 is the root of all.
class StackTree {
 public:
  /// Borrows `stacks`. The keys of the entries of `uses` are the stacks.
  template <class SomeUses>
  StackTree(const StackTable& stacks, const SomeUses& uses) : StackTree(stacks) {
    for (const auto& entry : uses.entries) add_stack(entry.key);
    link_nodes();
  }

  bool has(StackId node) const { return node == 0 || is_used_[node]; }
  StackId first_child(StackId node) const { return first_child_[node]; }
  StackId next_sibling(StackId node) const { return next_sibling_[node]; }

  /// Returns the frames of these nodes, each once.
  std::vector<FrameId> frames() const;

 private:
  explicit StackTree(const StackTable& stacks);
  void add_stack(StackId stack);
  void link_nodes();

  const StackTable& stacks_;
  std::vector<bool> is_used_;
  std::vector<StackId> first_child_;   // 0: none
  std::vector<StackId> next_sibling_;  // by rising number; 0: none
};

}  // namespace cmt::analysis
