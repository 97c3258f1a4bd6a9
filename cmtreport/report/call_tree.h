#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

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
  std::uint64_t weight = 0;  ///< of the call that file and line are of
};

/// How frames become functions, as lifetimes --by=function has it.
struct FunctionOptions {
  std::string skipped{};  ///< functions that count as allocation functions, an extended regular expression
  std::string hidden{};   ///< functions that are left out of stacks
  std::string focus{};    ///< only stacks with a function, file or library that matches
};

/// The calls of all processes: a tree of functions. Functions of the same name and library are one, whatever their
/// addresses. Functions that only hand memory on are left out. Node 0 is the root. Memory: 8 to 16 bytes a node, and 8
/// once all stacks are added.
class CallTree {
 public:
  struct Node {
    NodeNumber parent = 0;
    FrameNumber function = 0;

    bool operator==(const Node&) const = default;
  };

  CallTree();

  /// Adds those stacks of a process that have a weight: what they have allocated. `frames` has the names of their
  /// frames. Returns the node of each stack, `left_out` of those without a weight.
  std::vector<NodeNumber> add_stacks(std::span<const StackNode> stacks, const StackTable& frames,
                                     std::vector<std::uint64_t> weights, const FunctionOptions& options);

  /// A child of the root, for what is no stack.
  NodeNumber add_named(const std::string& name);

  /// To be called when all are added.
  void finish();

  /// After finish().
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Function>& functions() const { return functions_; }

  static constexpr NodeNumber left_out = ~NodeNumber{0};

 private:
  FrameNumber function_of(std::string name, std::string library);
  NodeNumber child_of(NodeNumber parent, FrameNumber function) {
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
  // By a hash of the node; 0: free. At most half full. As in StackTable, a node that was added right behind its parent
  // is not here: it is found by its number.
  std::vector<NodeNumber> slots_;
  std::size_t used_slots_ = 0;
  std::vector<Function> functions_;
  std::unordered_map<std::string, FrameNumber> function_ids_;  // by name, a zero byte, and library
};

}  // namespace cmt::report
