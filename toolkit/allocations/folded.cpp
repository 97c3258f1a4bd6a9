#include "toolkit/allocations/folded.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "toolkit/allocations/stack_tree.h"

namespace cmt::allocations {
namespace {

/// A tree of functions: stacks that differ only in addresses are one.
class FunctionTree {
 public:
  struct Node {
    std::uint32_t parent = 0;
    LabelId label = 0;
    std::int64_t figure = 0;
  };

  /// The child of a node for a function.
  std::uint32_t child_of(std::uint32_t parent, LabelId label) {
    const auto [found, is_new] =
        ids_.try_emplace(std::uint64_t{parent} << 32 | label, static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) nodes_.push_back({parent, label});
    return found->second;
  }
  Node& node(std::uint32_t id) { return nodes_[id]; }
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  std::vector<Node> nodes_{1};  // the first is the root
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;
};

FunctionTree function_tree(const StackTable& stacks, const Uses& uses, Metric metric, Labels& labels) {
  FunctionTree functions;
  const StackTree tree(stacks, uses);
  std::vector<std::uint32_t> node_of(stacks.node_count());
  for (StackId id = 1; id < stacks.node_count(); ++id) {
    if (!tree.has(id)) continue;
    std::uint32_t node = node_of[stacks.node(id).parent];
    const std::span<const Label> found = labels.of_frame(stacks.node(id).frame);
    for (auto label = found.rbegin(); label != found.rend(); ++label) node = functions.child_of(node, label->text);
    node_of[id] = node;
  }
  for (const Uses::Entry& entry : uses.entries) {
    const std::uint32_t found = node_of[entry.key];  // the root: not known, or all its functions are hidden
    const std::uint32_t node = found == 0 ? functions.child_of(0, labels.intern("[unknown]")) : found;
    functions.node(node).figure += entry.use.metric(metric);
  }
  return functions;
}

/// The places of labels among all labels, sorted.
std::vector<std::uint32_t> ranks_of(const Labels& labels) {
  std::vector<LabelId> sorted(labels.count());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::sort(sorted.begin(), sorted.end(), [&](LabelId a, LabelId b) { return labels.text(a) < labels.text(b); });
  std::vector<std::uint32_t> ranks(sorted.size());
  for (std::uint32_t i = 0; i < sorted.size(); ++i) ranks[sorted[i]] = i;
  return ranks;
}

}  // namespace

void write_folded(const StackTable& stacks, const Uses& uses, Metric metric, const std::string& hidden,
                  const std::function<void(const std::string&)>& write) {
  Labels labels(stacks, Key::function, "", hidden);
  const FunctionTree functions = function_tree(stacks, uses, metric, labels);
  const std::vector<std::uint32_t> ranks = ranks_of(labels);
  const auto& nodes = functions.nodes();

  // The nodes by parent, and then by name: the children of each are neighbours.
  std::vector<std::uint32_t> children(nodes.size() - 1);
  std::iota(children.begin(), children.end(), 1);
  std::sort(children.begin(), children.end(), [&](std::uint32_t a, std::uint32_t b) {
    return nodes[a].parent != nodes[b].parent ? nodes[a].parent < nodes[b].parent
                                              : ranks[nodes[a].label] < ranks[nodes[b].label];
  });
  std::vector<std::uint32_t> first_child(nodes.size() + 1);
  for (const std::uint32_t child : children) ++first_child[nodes[child].parent + 1];
  std::partial_sum(first_child.begin(), first_child.end(), first_child.begin());

  struct Step {
    std::uint32_t node;
    std::uint32_t next;
    std::size_t size_before;
  };
  std::vector<Step> path{{0, 0, 0}};
  std::string line, text;
  while (!path.empty()) {
    Step& step = path.back();
    if (step.next == first_child[step.node + 1]) {
      line.resize(step.size_before);
      path.pop_back();
      continue;
    }
    const std::uint32_t child = children[step.next++];
    const std::size_t size_before = line.size();
    line += (line.empty() ? "" : ";") + part_text(labels.text(nodes[child].label));
    if (nodes[child].figure > 0) text += line + " " + std::to_string(nodes[child].figure) + "\n";
    if (text.size() > 65536) write(std::exchange(text, {}));
    path.push_back({child, first_child[child], size_before});
  }
  if (!text.empty()) write(text);
}

}  // namespace cmt::allocations
