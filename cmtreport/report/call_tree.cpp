// Adds stacks to the tree of call_tree.h. Labels of frames become functions once per frame, because a frame is in many
// stacks.

#include "cmtreport/report/call_tree.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <span>

#include "analysis/stacks/function_names/python_frames.h"
#include "analysis/stacks/labels.h"

namespace cmt::report {

using analysis::Label;
using analysis::Labels;

namespace {

/// Adds to each stack's weight the weights of the stacks that it calls. A parent has a lower number.
void add_callees(std::span<const StackNode> stacks, std::vector<std::uint64_t>& weights) {
  for (std::size_t node = stacks.size(); --node > 0;) weights[stacks[node].parent] += weights[node];
}

/// Whether a function is one of glibc's that only _start calls.
bool is_called_by_start(std::string_view function) {
  return function == "__libc_start_main" || function == "__libc_start_main_impl" ||
         function == "__libc_start_call_main";
}

/// Whether a function is one of those that are the outermost ones of each stack.
bool is_start_function(std::string_view function) {
  static constexpr std::array<std::string_view, 6> names{"_start",   "start_thread", "clone3",
                                                         "__clone3", "clone",        "__clone"};
  return is_called_by_start(function) || std::find(names.begin(), names.end(), function) != names.end();
}

}  // namespace

/// The functions of frames, the outermost first.
class CallTree::FrameFunctions {
 public:
  struct Entry {
    FunctionId function;
    std::uint32_t name;  ///< index in the names of the frame
    bool is_start;       ///< of the C library: starts a program or a thread
    bool is_by_start;    ///< is_called_by_start()
  };

  FrameFunctions(CallTree& tree, const StackTable& stacks, const FunctionOptions& options)
      : tree_(tree),
        stacks_(stacks),
        labels_(stacks, analysis::Key::function, options.charges, options.hidden),
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
      const std::string_view text = labels_.own_text(label->text);
      functions.push_back({function_of(frame, *label), label->name, is_start_function(text), is_called_by_start(text)});
    }
    return functions;
  }

  FunctionId function_of(FrameId frame, const Label& label) {
    if (analysis::is_python(stacks_, frame) && !stacks_.names(frame).empty()) {
      const std::string name = analysis::python_function(stacks_.names(frame)[label.name], true);
      return tree_.function_of(name, analysis::library_text(stacks_, frame), label.is_allocation, true);
    }
    const std::size_t index = 2 * index_of(label.text) + (label.is_allocation ? 1 : 0);
    if (index >= function_of_label_.size()) function_of_label_.resize(2 * labels_.count());
    std::uint32_t& known = function_of_label_[index];
    if (known == 0) {
      const std::string library = frame == 0 ? "" : analysis::library_text(stacks_, frame);
      const FunctionId function =
          tree_.function_of(std::string(labels_.own_text(label.text)), library, label.is_allocation);
      known = static_cast<std::uint32_t>(function) + 1;
    }
    return static_cast<FunctionId>(known - 1);
  }

  CallTree& tree_;
  const StackTable& stacks_;
  Labels labels_;
  std::vector<std::uint32_t> function_of_label_;  // FunctionId + 1; 0: not yet; two of a label, by is_allocation
  std::vector<std::uint32_t> places_;             // by frame, in lists_
  std::vector<std::vector<Entry>> lists_;
};

CallTree::CallTree() : nodes_(1), slots_(1024) {
  function_of("[all]", "");
  child_of(root, function_of("[unknown]", ""));
}

FunctionId CallTree::function_of(std::string name, std::string library, bool is_allocation, bool is_python) {
  const auto next = static_cast<FunctionId>(functions_.size());
  const auto [found, is_new] = function_ids_.try_emplace(name + '\0' + library + (is_allocation ? "1" : ""), next);
  if (is_new)
    functions_.push_back({.name = std::move(name),
                          .library = std::move(library),
                          .is_allocation = is_allocation,
                          .is_python = is_python});
  return found->second;
}

CallId CallTree::add_named(const std::string& name) { return child_of(root, function_of(name, "")); }

void CallTree::finish(const std::string& cut_name) {
  if (const auto cut = function_ids_.find(std::string("[cut]") + '\0'); cut != function_ids_.end())
    functions_[index_of(cut->second)].name = cut_name;
  slots_ = {};
  function_ids_ = {};
  nodes_.shrink_to_fit();
}

/// The node's slot, or the free one where it belongs.
std::size_t CallTree::slot_of(const Node& node) const {
  assert(!slots_.empty());  // finish() gives them up
  const std::uint64_t hash =
      (std::uint64_t{index_of(node.parent)} << 32 | index_of(node.function)) * 0x9e3779b97f4a7c15;
  std::size_t slot = hash >> 32 & (slots_.size() - 1);
  while (slots_[slot] != root && !(at(slots_[slot]) == node)) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

CallId CallTree::child_in_slots(const Node& node) {
  assert(used_slots_ * 2 <= slots_.size());  // so that each search ends at a free slot
  CallId& slot = slots_[slot_of(node)];
  if (slot != root) return slot;
  const auto number = static_cast<CallId>(nodes_.size());
  nodes_.push_back(node);
  slot = number;
  if (++used_slots_ * 2 <= slots_.size()) return number;
  slots_.assign(slots_.size() * 2, root);
  for (std::size_t each = 1; each < nodes_.size(); ++each) {
    if (index_of(nodes_[each].parent) + 1 != each) slots_[slot_of(nodes_[each])] = static_cast<CallId>(each);
  }
  return number;
}

std::vector<CallId> CallTree::add_stacks(std::span<const StackNode> stacks, const StackTable& frames,
                                         std::vector<std::uint64_t> weights, const FunctionOptions& options) {
  assert(!stacks.empty() && weights.size() <= stacks.size());
  weights.resize(stacks.size());
  std::vector<bool> has_weight(stacks.size());
  for (std::size_t id = 0; id < stacks.size(); ++id) has_weight[id] = weights[id] != 0;
  add_callees(stacks, weights);
  const std::vector<std::uint64_t>& sums = weights;
  FrameFunctions functions(*this, frames, options);
  std::vector<CallId> node_of(stacks.size());
  // The _start of a program without symbols has no name, but calls a function that has one.
  std::vector<bool> is_start_of_program(stacks.size());
  for (StackId id = 1; id < stacks.size(); ++id) {
    const StackId caller = stacks[id].parent;
    if (sums[id] == 0 || caller == 0 || stacks[caller].parent != 0 || is_start_of_program[caller]) continue;
    const std::span<const FrameFunctions::Entry> entries = functions.of_frame(stacks[id].frame);
    is_start_of_program[caller] = !entries.empty() && entries.front().is_by_start;
  }
  for (StackId id = 1; id < stacks.size(); ++id) {
    if (sums[id] == 0) continue;
    assert(stacks[id].parent < id);
    const FrameId frame = stacks[id].frame;
    CallId node = node_of[stacks[id].parent];
    const std::span<const FrameFunctions::Entry> entries = functions.of_frame(frame);
    for (const auto& [function, name, is_start, is_by_start] : entries) {
      if (node == root && (is_start || is_start_of_program[id])) continue;
      node = child_of(node, function);
      Function& of_frame = functions_[index_of(function)];
      if (sums[id] <= of_frame.weight) continue;
      const std::span<const FrameName> names = frames.names(frame);
      if (names.empty()) continue;
      assert(name < names.size());
      of_frame.weight = sums[id];
      of_frame.file = std::string(names[name].file);
      of_frame.line = names[name].line;
    }
    const bool has_others = node != root || entries.empty();
    node_of[id] = has_others || !has_weight[id] ? node : child_of(root, entries.back().function);
  }
  const CallId unknown_node = add_named("[unknown]");
  for (StackId id = 0; id < node_of.size(); ++id) {
    if (!has_weight[id])
      node_of[id] = left_out;
    else if (node_of[id] == root)
      node_of[id] = unknown_node;  // the stack is not known, or all its functions are left out
  }
  return node_of;
}

}  // namespace cmt::report
