#pragma once

#include <cstdint>
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
/// addresses. Functions that only hand memory on are left out. Node 0 is the root. Memory: 16 to 24 bytes a node, and 8
/// once all stacks are added.
class CallTree {
 public:
  struct Node {
    NodeNumber parent = 0;
    FrameNumber function = 0;
  };

  CallTree();

  /// Adds those stacks of a process that have a weight: what they have allocated. Returns the node of each stack,
  /// `left_out` of those without a weight.
  std::vector<NodeNumber> add_stacks(const StackTable& stacks, const std::vector<std::uint64_t>& weights,
                                     const FunctionOptions& options);

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
  NodeNumber child_of(NodeNumber parent, FrameNumber function) { return calls_.add_node({parent, function}); }
  class FrameFunctions;

  StackTable calls_;  // whose frames are functions, until finish()
  std::vector<Node> nodes_;
  std::vector<Function> functions_;
  std::unordered_map<std::string, FrameNumber> function_ids_;  // by name, a zero byte, and library
};

}  // namespace cmt::report
