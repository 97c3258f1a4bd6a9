/// Folds the small calls of a tree, so that a page can hold the tree of any program and its sums stay exact.
#pragma once

#include <cstdint>
#include <vector>

#include "cmtreport/report/call_tree.h"
#include "cmtreport/report/node_totals.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// A call tree without its small nodes. A node is small if it has less than a share of the total of every measure.
/// Small nodes, with all that they call, become one node "[other, N functions]" below their caller. The functions that
/// allocate there are its children, each with the sum of its allocations. Functions that are small even for that count
/// for the node itself. Small allocation functions become one with the node that is charged.
///
/// Before, and after:
///
///     main (100 %)                                main (100 %)
///       parse (60 %)                                parse (60 %)
///       a (0.02 %) calls make (0.02 %)              [other, 3 functions] (0.05 %)
///       b (0.02 %) calls make (0.02 %)     ->         make (0.04 %)
///       c (0.01 %), d (0.001 %)                       c (0.01 %)
struct FoldedTree {
  /// The function of the whole tree that a frame is of, or the number of functions that were folded into it.
  struct FrameOrigin {
    FunctionId function{};
    std::uint32_t folded_functions = 0;  ///< 0: a function
  };

  Nodes nodes;
  std::vector<FrameOrigin> origins;  ///< by frame
  Frames frames{};                   ///< the names; empty before name_frames()
  Folded folded;
  std::vector<NodeNumber> node_of;  ///< by CallId

  NodeNumber node_of_call(CallId call) const { return node_of[index_of(call)]; }
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

  /// Returns the least share with which the nodes that are not folded fit a budget.
  double least_share(const FoldBudget& budget) const;
  FoldedTree fold(double share) const {
    FoldedTree folded = fold_nodes(share);
    name_frames(folded);
    return folded;
  }
  /// fold() in two parts. A caller that tries several shares needs names only for the last one.
  FoldedTree fold_nodes(double share) const;
  void name_frames(FoldedTree& folded) const;

 private:
  const CallTree& tree_;
  const TotalsByNode& totals_;
  FoldFigures all_{};          // the figures of the root, with all that it calls
  std::vector<float> shares_;  // by node, with all that it calls: the largest share that it has of any figure
};

}  // namespace cmt::report
