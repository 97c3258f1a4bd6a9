/// Merges the call stacks of all processes of a report into one tree of functions. The hard part is memory: traces with
/// millions of stacks leave few bytes for each node.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/stacks/labels.h"
#include "analysis/stacks/native_frames.h"
#include "cmt/stacks.h"
#include "cmtreport/model/measures.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// A function of a report, whatever process it is in.
struct Function {
  std::string name;
  std::string library;
  std::string file{};
  std::uint32_t line = 0;
  bool is_allocation = false;  ///< only hands memory on
  bool is_python = false;
  std::uint64_t weight = 0;  ///< of the call that file and line are of
};

/// How frames become functions, as lifetimes --by=function has it.
struct FunctionOptions {
  analysis::ChargeRule charges{};
  std::string hidden{};  ///< functions that are left out of stacks
  analysis::NativeFrames native = analysis::NativeFrames::fold;
  std::string focus{};  ///< only stacks with a function, file or library that matches
};

/// The calls of all processes: a tree of functions. Functions of the same name and library are one, whatever their
/// addresses. A function that only hands memory on in some of its stacks (ChargeRule) is two, and each line of a
/// function of Python is one. The functions of the C library that start a program or a thread are left out: each stack
/// has them. Node 0 is the root. Memory: 8 to 16 bytes a node, and 8 once all stacks are added.
class CallTree {
 public:
  struct Node {
    NodeNumber parent = 0;
    FrameNumber function = 0;

    bool operator==(const Node&) const = default;
  };

  CallTree();

  /// Adds the stacks of a process that have a weight, which is the amount that they allocated. `frames` has the names
  /// of their frames. Returns the node of each stack, and `left_out` for a stack without a weight.
  std::vector<NodeNumber> add_stacks(std::span<const StackNode> stacks, const StackTable& frames,
                                     std::vector<std::uint64_t> weights, const FunctionOptions& options);

  /// Returns a child of the root that is no stack, such as a class of sizes.
  NodeNumber add_named(const std::string& name);

  /// Gives up the tables that only adding needs. Call it after the last stack. `cut_name` names the frame of callers
  /// that were not recorded.
  void finish(const std::string& cut_name = "[cut]");

  /// Valid after finish().
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Function>& functions() const { return functions_; }

  /// Returns the node that is charged with the own allocations of a node: the nearest one outwards whose function is no
  /// allocation function, or else the outermost one.
  NodeNumber charged(NodeNumber node) const {
    while (functions_[nodes_[node].function].is_allocation && nodes_[node].parent != 0) node = nodes_[node].parent;
    return node;
  }
  FrameNumber charged_function(NodeNumber node) const { return nodes_[charged(node)].function; }

  static constexpr NodeNumber left_out = ~NodeNumber{0};

 private:
  FrameNumber function_of(std::string name, std::string library, bool is_allocation = false, bool is_python = false);
  NodeNumber child_of(NodeNumber parent, FrameNumber function) {
    assert(parent < nodes_.size() && function < functions_.size());
    const Node node{parent, function};
    const NodeNumber next = parent + 1;
    if (next != nodes_.size()) return nodes_[next] == node ? next : child_in_slots(node);
    nodes_.push_back(node);
    return next;
  }
  NodeNumber child_in_slots(const Node& node);
  std::size_t slot_of(const Node& node) const;
  class FrameFunctions;

  std::vector<Node> nodes_;
  // Node numbers by a hash of the node; 0 is a free slot, and at most half of the slots are used. A node whose number
  // follows its parent's needs no slot, as in StackTable: child_of() compares that number first.
  std::vector<NodeNumber> slots_;
  std::size_t used_slots_ = 0;
  std::vector<Function> functions_;
  std::unordered_map<std::string, FrameNumber> function_ids_;  // by name, a zero byte, library, and is_allocation
};

}  // namespace cmt::report
