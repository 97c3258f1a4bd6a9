#pragma once

#include <vector>

#include "cmtreport/model/measures.h"
#include "cmtreport/report/call_tree.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// What a node's own allocations have in all, and live at the peak.
struct NodeTotals {
  Measures sum;
  std::uint64_t peak_bytes = 0;
  std::uint64_t peak_blocks = 0;
};

/// A call tree without what is small: nodes below a share of the total of every measure, with all that they call, are
/// one node "[other, N functions]" below their caller.
struct FoldedTree {
  Nodes nodes;
  Frames frames;
  Folded folded;
  std::vector<NodeNumber> node_of;  ///< by the number of a node of the whole tree
};

/// `totals` by node of the tree.
FoldedTree fold_tree(const CallTree& tree, const std::vector<NodeTotals>& totals, double share);

}  // namespace cmt::report
