#include "cmtreport/report/call_tree.h"

#include <algorithm>
#include <span>

#include "toolkit/allocations/labels.h"

namespace cmt::report {

using allocations::Label;
using allocations::LabelId;
using allocations::Labels;

namespace {

/// Which nodes of a table have a stack that has allocated, and what those stacks have in all.
std::vector<std::uint64_t> weights_of_nodes(const StackTable& stacks, const std::vector<std::uint64_t>& weights) {
  std::vector<std::uint64_t> sums(stacks.node_count());
  for (StackId node = stacks.node_count(); --node > 0;) {  // a parent has a lower number
    if (node < weights.size()) sums[node] += weights[node];
    sums[stacks.node(node).parent] += sums[node];
  }
  return sums;
}

}  // namespace

CallTree::CallTree() : nodes_(1) {
  function_of("[all]", "");
  child_of(0, function_of("[unknown]", ""));
}

FrameNumber CallTree::function_of(std::string name, std::string library) {
  const auto next = static_cast<FrameNumber>(functions_.size());
  const auto [found, is_new] = function_ids_.try_emplace(name + '\0' + library, next);
  if (is_new) functions_.push_back({.name = std::move(name), .library = std::move(library)});
  return found->second;
}

NodeNumber CallTree::child_of(NodeNumber parent, FrameNumber function) {
  const auto next = static_cast<NodeNumber>(nodes_.size());
  const auto [found, is_new] = node_ids_.try_emplace(std::uint64_t{parent} << 32 | function, next);
  if (is_new) nodes_.push_back({parent, function});
  return found->second;
}

NodeNumber CallTree::add_named(const std::string& name) { return child_of(0, function_of(name, "")); }

std::vector<NodeNumber> CallTree::add_stacks(const StackTable& stacks, const std::vector<std::uint64_t>& weights,
                                             const FunctionOptions& options) {
  const std::vector<std::uint64_t> sums = weights_of_nodes(stacks, weights);
  Labels labels(stacks, allocations::Key::function, options.skipped, options.hidden);
  std::vector<FrameNumber> function_of_label;  // +1; 0: not yet
  const auto function_of_found = [&](FrameId frame, const Label& label) -> FrameNumber {
    if (label.text >= function_of_label.size()) function_of_label.resize(labels.count());
    FrameNumber& known = function_of_label[label.text];
    if (known == 0) {
      const std::string library = frame == 0 ? "" : allocations::library_text(stacks, frame);
      known = function_of(std::string(labels.own_text(label.text)), library) + 1;
    }
    return known - 1;
  };
  std::vector<NodeNumber> node_of(stacks.node_count());
  for (StackId id = 1; id < stacks.node_count(); ++id) {
    NodeNumber node = node_of[stacks.node(id).parent];
    const FrameId frame = stacks.node(id).frame;
    if (sums[id] != 0) {
      const std::span<const Label> found = labels.of_frame(frame);
      for (auto label = found.rbegin(); label != found.rend(); ++label) {
        if (label->is_allocation) continue;
        const FrameNumber function = function_of_found(frame, *label);
        node = child_of(node, function);
        const std::span<const FrameName> names = stacks.names(frame);
        if (names.empty() || sums[id] <= functions_[function].weight) continue;
        functions_[function].weight = sums[id];
        functions_[function].file = std::string(names[label->name].file);
        functions_[function].line = names[label->name].line;
      }
    }
    node_of[id] = node;
  }
  const NodeNumber unknown_node = add_named("[unknown]");
  for (NodeNumber& node : node_of) {
    if (node == 0) node = unknown_node;  // not known, or all its functions are left out
  }
  return node_of;
}

}  // namespace cmt::report
