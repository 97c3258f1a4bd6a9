#pragma once

#include <vector>

#include "cmtreport/report/fold.h"
#include "cmtreport/report/recording.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// What stands out, the most to be won first. `report` has its figures but for the tree; `totals` and `node_of`, the
/// node in the folded tree, are by node of the whole tree.
std::vector<Finding> find_findings(const Recording& recording, const Report& report,
                                   const std::vector<NodeTotals>& totals, const std::vector<NodeNumber>& node_of);

}  // namespace cmt::report
