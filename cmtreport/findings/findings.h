#pragma once

#include <vector>

#include "cmtreport/held_pages/page_pass.h"
#include "cmtreport/report/changes_by_node.h"
#include "cmtreport/report/fold.h"
#include "cmtreport/report/recording.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// What stands out, in words with numbers, the most to be won first. Every number is a sum over the trace, none is an
/// estimate; bench/report_findings counts them again by other means.
///
/// `report` has its figures but for the tree and the findings; `totals`, `changes` and `node_of`, the node in the
/// folded tree, are by node of the whole tree. `pages`: who holds these, where it is known.
std::vector<Finding> find_findings(const Recording& recording, const Report& report, const TotalsByNode& totals,
                                   const ChangesByNode& changes, const std::vector<NodeNumber>& node_of,
                                   const HeldPages& pages);

}  // namespace cmt::report
