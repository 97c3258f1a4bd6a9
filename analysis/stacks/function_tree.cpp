// Builds the tree of functions, and sorts the children of each node by name.
#include "analysis/stacks/function_tree.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <span>

#include "analysis/stacks/stack_tree.h"

namespace cmt::analysis {
namespace {

/// Returns the rank of each label in the order of the texts.
std::vector<std::uint32_t> ranks_of(const Labels& labels) {
  std::vector<std::uint32_t> sorted(labels.count());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::sort(sorted.begin(), sorted.end(),
            [&](std::uint32_t a, std::uint32_t b) { return labels.text(LabelId{a}) < labels.text(LabelId{b}); });
  std::vector<std::uint32_t> ranks(sorted.size());
  for (std::uint32_t i = 0; i < sorted.size(); ++i) ranks[sorted[i]] = i;
  return ranks;
}

}  // namespace

FunctionTree::FunctionTree(const StackTable& stacks, const Uses& uses, Labels& labels) {
  const StackTree tree(stacks, uses);
  std::vector<NodeId> node_of(stacks.node_count());
  for (StackId id = 1; id < stacks.node_count(); ++id) {
    if (!tree.has(id)) continue;
    NodeId node = node_of[stacks.node(id).parent];
    const std::span<const Label> found = labels.of_frame(stacks.node(id).frame);
    for (auto label = found.rbegin(); label != found.rend(); ++label) node = child_of(node, label->text, labels);
    node_of[id] = node;
  }
  end_of_entry_.reserve(uses.entries.size());
  for (const Uses::Entry& entry : uses.entries) {
    const NodeId end = node_of[entry.key];  // the root: not known, or all its functions are hidden
    end_of_entry_.push_back(end != 0 ? end : child_of(0, labels.intern("[unknown]"), labels));
  }
  sort_children(labels);
}

FunctionTree::NodeId FunctionTree::child_of(NodeId parent, LabelId label, Labels& labels) {
  assert(parent < nodes_.size());
  const std::uint32_t depth = nodes_[parent].depth + 1;
  if (depth > depth_max) return parent;
  if (depth == depth_max) label = labels.intern("[deeper]");
  const auto [found, is_new] =
      ids_.try_emplace(std::uint64_t{parent} << 32 | index_of(label), static_cast<NodeId>(nodes_.size()));
  if (is_new) nodes_.push_back({parent, label, depth});
  return found->second;
}

void FunctionTree::sort_children(const Labels& labels) {
  const std::vector<std::uint32_t> ranks = ranks_of(labels);
  children_.resize(nodes_.size() - 1);
  std::iota(children_.begin(), children_.end(), 1);
  std::sort(children_.begin(), children_.end(), [&](NodeId a, NodeId b) {
    return nodes_[a].parent != nodes_[b].parent ? nodes_[a].parent < nodes_[b].parent
                                                : ranks[index_of(nodes_[a].label)] < ranks[index_of(nodes_[b].label)];
  });
  first_child_.resize(nodes_.size() + 1);
  for (const NodeId child : children_) ++first_child_[nodes_[child].parent + 1];
  std::partial_sum(first_child_.begin(), first_child_.end(), first_child_.begin());
  assert(first_child_.back() == children_.size());
}

std::vector<std::int64_t> FunctionTree::figures(const Uses& uses, Metric metric) const {
  assert(uses.entries.size() == end_of_entry_.size());
  std::vector<std::int64_t> figures(nodes_.size());
  for (std::size_t i = 0; i < end_of_entry_.size(); ++i)
    figures[end_of_entry_[i]] += uses.entries[i].use.metric(metric);
  return figures;
}

}  // namespace cmt::analysis
