/// The tree of functions of a trace, without addresses.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <vector>

#include "analysis/fates/use.h"
#include "analysis/stacks/labels.h"
#include "libcmt/number_hash.h"

namespace cmt::analysis {

/// The functions of the stacks that have allocated, as a tree, for folded stacks and speedscope. Stacks that differ
/// only in addresses are one path. Node 0 is the root of all. Memory: some 60 bytes a node, and 4 bytes a node of the
/// stacks.
///
/// A form that names each function of each stack grows with the square of the depth. So a path has `depth_max`
/// functions at most. The last one is then "[deeper]", in place of all functions further inside.
class FunctionTree {
 public:
  using NodeId = std::uint32_t;

  static constexpr std::uint32_t depth_max = 1024;

  /// Adds "[unknown]" to `labels`, and borrows nothing. Functions that `labels` hides are in no path.
  FunctionTree(const StackTable& stacks, const Uses& uses, Labels& labels);

  LabelId label(NodeId node) const { return nodes_[node].label; }

  /// Returns, for each node, the sum of a figure over the stacks that end there. `uses` are those of the constructor.
  std::vector<std::int64_t> figures(const Uses& uses, Metric metric) const;

  /// Walks the tree from the root, children in the order of their names. Calls `enter` and `leave` with each node but
  /// the root.
  template <class Enter, class Leave>
  void walk(Enter enter, Leave leave) const {
    struct Step {
      NodeId node;
      std::uint32_t next;
    };
    std::vector<Step> path{{0, first_child_[0]}};
    while (!path.empty()) {
      Step& step = path.back();
      if (step.next != first_child_[step.node + 1]) {
        const NodeId child = children_[step.next++];
        enter(child);
        path.push_back({child, first_child_[child]});
        continue;
      }
      if (step.node != 0) leave(step.node);
      path.pop_back();
    }
  }

 private:
  struct Node {
    NodeId parent = 0;
    LabelId label{};
    std::uint32_t depth = 0;
  };

  NodeId child_of(NodeId parent, LabelId label, Labels& labels);
  void sort_children(const Labels& labels);

  std::vector<Node> nodes_{1};
  tsl::robin_map<std::uint64_t, NodeId, NumberHash> ids_;  // by parent and label
  std::vector<NodeId> end_of_entry_;                       // by place in the entries of uses
  std::vector<NodeId> children_;                           // all nodes, by parent and then by name
  std::vector<std::uint32_t> first_child_;                 // by node: its place in children_
};

}  // namespace cmt::analysis
