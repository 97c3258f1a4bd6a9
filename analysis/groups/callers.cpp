// Finds the labels of callers outwards in a stack. Long runs of allocation functions are skipped in one step.
#include "analysis/groups/callers.h"

#include <cassert>

namespace cmt::analysis {

std::vector<StackId> find_labelled(const StackTable& stacks, const StackTree& tree, Labels& labels) {
  std::vector<StackId> nearest(stacks.node_count());
  const auto is_caller = [](const Label& label) { return !label.is_allocation; };
  for (StackId node = 1; node < stacks.node_count(); ++node) {
    if (!tree.has(node)) continue;
    const std::span<const Label> found = labels.of_frame(stacks.node(node).frame);
    const StackId outwards = nearest[stacks.node(node).parent];
    const bool is_outermost = outwards == 0 && !found.empty();
    nearest[node] = is_outermost || std::any_of(found.begin(), found.end(), is_caller) ? node : outwards;
  }
  return nearest;
}

LabelId StackPlace::next(const StackTable& stacks, const std::vector<StackId>& labelled, Labels& labels) {
  assert(node_ < labelled.size());
  for (node_ = labelled[node_]; node_ != 0; node_ = labelled[stacks.node(node_).parent], index_ = 0) {
    const std::span<const Label> found = labels.of_frame(stacks.node(node_).frame);
    const bool is_last = labelled[stacks.node(node_).parent] == 0;
    while (index_ < found.size()) {
      const Label& label = found[index_++];
      if (!label.is_allocation || (is_last && index_ == found.size())) return label.text;
    }
  }
  return no_label;
}

}  // namespace cmt::analysis
