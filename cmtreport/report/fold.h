#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "cmtreport/model/changes.h"
#include "cmtreport/report/call_tree.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// What a node's own allocations have in all, and live at the peak.
struct NodeTotals {
  Measures sum;
  std::uint64_t peak_bytes = 0;
  std::uint64_t peak_blocks = 0;
  std::uint32_t changes = 0;  ///< of a measure from a moment to the next

  /// Adds what was done up to a moment; moments never fall.
  void add(std::size_t moment, const SparseMeasures& more);
  /// Adds what was done up to other moments.
  void merge(const NodeTotals& more);

 private:
  std::uint32_t moment_ = 0;   // the last
  std::uint32_t changed_ = 0;  // measures in it, a bit for each
};

/// NodeTotals by node of a tree, of which most have no allocations of their own. Memory: 4 bytes a node, and 140 for
/// each that has some.
class TotalsByNode {
 public:
  explicit TotalsByNode(std::size_t nodes) : places_(nodes), own_(1) {}

  std::size_t size() const { return places_.size(); }
  const NodeTotals& operator[](NodeNumber node) const { return own_[places_[node]]; }
  bool has(NodeNumber node) const { return places_[node] != 0; }

  /// The nodes that have some, by rising number after sort(); `of` any other makes it one.
  const std::vector<NodeNumber>& nodes() const { return nodes_; }
  void sort() { std::sort(nodes_.begin(), nodes_.end()); }
  NodeTotals& of(NodeNumber node) {
    if (places_[node] == 0) {
      places_[node] = static_cast<std::uint32_t>(own_.size());
      nodes_.push_back(node);
      own_.emplace_back();
    }
    return own_[places_[node]];
  }

 private:
  std::vector<std::uint32_t> places_;  // in own_; 0: none
  std::vector<NodeNumber> nodes_;
  std::deque<NodeTotals> own_;  // a vector would be copied when it grows
};

/// The figures that a node is judged by: none of them is ever below 0.
inline constexpr std::array<Measure, 8> judged_measures{
    Measure::allocated_bytes,     Measure::allocated_blocks,   Measure::temporary_blocks, Measure::short_lived_blocks,
    Measure::other_thread_blocks, Measure::reallocated_blocks, Measure::untouched_bytes,  Measure::leaked_bytes};
using FoldFigures = std::array<std::uint64_t, judged_measures.size() + 1>;  ///< the last: bytes at the peak

/// A call tree without what is small: nodes below a share of the total of every measure, with all that they call, are
/// one node "[other, N functions]" below their caller. The functions that allocate there are its children, each with
/// the sum of its allocations; those that are small even for that are left to the node itself.
///
///     main (100 %)                                main (100 %)
///       parse (60 %)                                parse (60 %)
///       a (0.02 %) calls make (0.02 %)              [other, 3 functions] (0.05 %)
///       b (0.02 %) calls make (0.02 %)     ->         make (0.04 %)
///       c (0.01 %), d (0.001 %)                       c (0.01 %)
struct FoldedTree {
  Nodes nodes;
  Frames frames;
  Folded folded;
  std::vector<NodeNumber> node_of;  ///< by the number of a node of the whole tree
};

/// How much a report may hold.
struct FoldBudget {
  std::uint64_t nodes = 0;
  std::uint64_t changes = 0;
};

class Folding {
 public:
  /// Borrows both.
  Folding(const CallTree& tree, const TotalsByNode& totals);

  /// The least share of which the nodes that are not folded fit a budget.
  double least_share(const FoldBudget& budget) const;
  FoldedTree fold(double share) const;

 private:
  const CallTree& tree_;
  const TotalsByNode& totals_;
  FoldFigures all_{};          // of the root, with all that it calls
  std::vector<float> shares_;  // by node, with all that it calls: its largest one of any figure
};

}  // namespace cmt::report
