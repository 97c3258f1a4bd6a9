// Links the nodes of the stacks that have allocated: each node to its first child and its next sibling.
#include "analysis/stacks/stack_tree.h"

#include <cassert>

namespace cmt::analysis {

StackTree::StackTree(const StackTable& stacks)
    : stacks_(stacks),
      is_used_(stacks.node_count()),
      first_child_(stacks.node_count()),
      next_sibling_(stacks.node_count()) {}

void StackTree::add_stack(StackId stack) {
  assert(stack < is_used_.size());
  for (StackId at = stack; at != 0 && !is_used_[at]; at = stacks_.node(at).parent) is_used_[at] = true;
}

void StackTree::link_nodes() {
  for (StackId node = stacks_.node_count(); --node > 0;) {
    if (!is_used_[node]) continue;
    assert(stacks_.node(node).parent < node);
    StackId& first = first_child_[stacks_.node(node).parent];
    next_sibling_[node] = first;
    first = node;
  }
}

std::vector<FrameId> StackTree::frames() const {
  std::vector<bool> seen(stacks_.frame_count());
  std::vector<FrameId> frames;
  for (StackId node = 1; node < stacks_.node_count(); ++node) {
    const FrameId frame = stacks_.node(node).frame;
    if (!is_used_[node] || frame == 0 || seen[frame]) continue;
    seen[frame] = true;
    frames.push_back(frame);
  }
  return frames;
}

}  // namespace cmt::analysis
