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

/// Numbers in a CallTree. The nodes and frames of a report (NodeNumber, FrameNumber) are those that are left when small
/// calls are folded. Distinct types let the compiler refuse a mix-up.
enum class CallId : std::uint32_t {};
enum class FunctionId : std::uint32_t {};
constexpr std::size_t index_of(CallId call) { return static_cast<std::size_t>(call); }
constexpr std::size_t index_of(FunctionId function) { return static_cast<std::size_t>(function); }

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
  std::string focus{};  ///< only stacks with a function, file, line or library that matches
};

/// The calls of all processes: a tree of functions. Functions of the same name and library are one, whatever their
/// addresses. A function that only hands memory on in some of its stacks (ChargeRule) is two, and each line of a
/// function of Python is one. The functions of the C library that start a program or a thread are left out: each stack
/// has them. Node 0 is the root. Memory: 8 to 16 bytes a node, and 8 once all stacks are added.
class CallTree {
 public:
  struct Node {
    CallId parent{};
    FunctionId function{};

    bool operator==(const Node&) const = default;
  };

  CallTree();

  /// Adds the stacks of a process that have a weight, which is the amount that they allocated. `frames` has the names
  /// of their frames. Returns the node of each stack, and `left_out` for a stack without a weight.
  std::vector<CallId> add_stacks(std::span<const StackNode> stacks, const StackTable& frames,
                                 std::vector<std::uint64_t> weights, const FunctionOptions& options);

  /// Returns a child of the root that is no stack, such as a class of sizes.
  CallId add_named(const std::string& name);

  /// Gives up the tables that only adding needs. Call it after the last stack. `cut_name` names the frame of callers
  /// that were not recorded.
  void finish(const std::string& cut_name = "[cut]");

  /// Valid after finish().
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Function>& functions() const { return functions_; }
  const Node& at(CallId call) const { return nodes_[index_of(call)]; }
  const Function& at(FunctionId function) const { return functions_[index_of(function)]; }

  static constexpr CallId root{};

  /// Returns the node that is charged with the own allocations of a node: the nearest one outwards whose function is no
  /// allocation function, or else the outermost one.
  CallId charged(CallId call) const {
    while (at(at(call).function).is_allocation && at(call).parent != root) call = at(call).parent;
    return call;
  }
  FunctionId charged_function(CallId call) const { return at(charged(call)).function; }

  static constexpr CallId left_out{~std::uint32_t{0}};

 private:
  FunctionId function_of(std::string name, std::string library, bool is_allocation = false, bool is_python = false);
  CallId child_of(CallId parent, FunctionId function) {
    assert(index_of(parent) < nodes_.size() && index_of(function) < functions_.size());
    const Node child{parent, function};
    const std::size_t next = index_of(parent) + 1;
    if (next != nodes_.size()) return nodes_[next] == child ? static_cast<CallId>(next) : child_in_slots(child);
    nodes_.push_back(child);
    return static_cast<CallId>(next);
  }
  CallId child_in_slots(const Node& node);
  std::size_t slot_of(const Node& node) const;
  class FrameFunctions;

  std::vector<Node> nodes_;
  // Node numbers by a hash of the node; 0 is a free slot, and at most half of the slots are used. A node whose number
  // follows its parent's needs no slot, as in StackTable: child_of() compares that number first.
  std::vector<CallId> slots_;
  std::size_t used_slots_ = 0;
  std::vector<Function> functions_;
  std::unordered_map<std::string, FunctionId> function_ids_;  // by name, a zero byte, library, and is_allocation
};

}  // namespace cmt::report
