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

/// The functions of frames, the outermost first, without those that only hand memory on.
class CallTree::FrameFunctions {
 public:
  struct Entry {
    FrameNumber function;
    std::uint32_t name;  ///< index in the names of the frame
  };

  FrameFunctions(CallTree& tree, const StackTable& stacks, const FunctionOptions& options)
      : tree_(tree),
        stacks_(stacks),
        labels_(stacks, allocations::Key::function, options.skipped, options.hidden),
        places_(stacks.frame_count(), not_known) {}

  std::span<const Entry> of_frame(FrameId frame) {
    std::uint32_t& place = places_[frame];
    if (place == not_known) {
      place = static_cast<std::uint32_t>(lists_.size());
      lists_.push_back(find(frame));
    }
    return lists_[place];
  }

 private:
  static constexpr std::uint32_t not_known = ~std::uint32_t{0};

  std::vector<Entry> find(FrameId frame) {
    std::vector<Entry> functions;
    const std::span<const Label> found = labels_.of_frame(frame);
    for (auto label = found.rbegin(); label != found.rend(); ++label) {
      if (!label->is_allocation) functions.push_back({function_of(frame, label->text), label->name});
    }
    return functions;
  }

  FrameNumber function_of(FrameId frame, LabelId label) {
    if (label >= function_of_label_.size()) function_of_label_.resize(labels_.count());
    FrameNumber& known = function_of_label_[label];
    if (known == 0) {
      const std::string library = frame == 0 ? "" : allocations::library_text(stacks_, frame);
      known = tree_.function_of(std::string(labels_.own_text(label)), library) + 1;
    }
    return known - 1;
  }

  CallTree& tree_;
  const StackTable& stacks_;
  Labels labels_;
  std::vector<FrameNumber> function_of_label_;  // +1; 0: not yet
  std::vector<std::uint32_t> places_;           // by frame, in lists_
  std::vector<std::vector<Entry>> lists_;
};

CallTree::CallTree() {
  function_of("[all]", "");
  child_of(0, function_of("[unknown]", ""));
}

FrameNumber CallTree::function_of(std::string name, std::string library) {
  const auto next = static_cast<FrameNumber>(functions_.size());
  const auto [found, is_new] = function_ids_.try_emplace(name + '\0' + library, next);
  if (is_new) functions_.push_back({.name = std::move(name), .library = std::move(library)});
  return found->second;
}

NodeNumber CallTree::add_named(const std::string& name) { return child_of(0, function_of(name, "")); }

void CallTree::finish() {
  nodes_.reserve(calls_.node_count());
  for (const StackNode& node : calls_.nodes()) nodes_.push_back({node.parent, node.frame});
  calls_ = StackTable();
}

std::vector<NodeNumber> CallTree::add_stacks(const StackTable& stacks, const std::vector<std::uint64_t>& weights,
                                             const FunctionOptions& options) {
  const std::vector<std::uint64_t> sums = weights_of_nodes(stacks, weights);
  FrameFunctions functions(*this, stacks, options);
  std::vector<NodeNumber> node_of(stacks.node_count());
  for (StackId id = 1; id < stacks.node_count(); ++id) {
    if (sums[id] == 0) continue;
    const FrameId frame = stacks.node(id).frame;
    NodeNumber node = node_of[stacks.node(id).parent];
    for (const auto& [function, name] : functions.of_frame(frame)) {
      node = child_of(node, function);
      if (sums[id] <= functions_[function].weight) continue;
      const std::span<const FrameName> names = stacks.names(frame);
      if (names.empty()) continue;
      functions_[function].weight = sums[id];
      functions_[function].file = std::string(names[name].file);
      functions_[function].line = names[name].line;
    }
    node_of[id] = node;
  }
  const NodeNumber unknown_node = add_named("[unknown]");
  for (StackId id = 0; id < node_of.size(); ++id) {
    if (id >= weights.size() || weights[id] == 0)
      node_of[id] = left_out;
    else if (node_of[id] == 0)
      node_of[id] = unknown_node;  // not known, or all its functions are left out
  }
  return node_of;
}

}  // namespace cmt::report
