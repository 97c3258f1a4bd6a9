/// Finds what is worth a look in a report: leaks, growth, temporary blocks, pinned pages and more.
#pragma once

#include <vector>

#include "cmtreport/held_pages/page_pass.h"
#include "cmtreport/report/changes_by_node.h"
#include "cmtreport/report/fold.h"
#include "cmtreport/report/recording.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// Returns the findings, in words with numbers. The finding with the largest possible gain comes first. Every number is
/// a sum over the trace, and no number is an estimate. bench/report_findings counts them again by other means.
///
/// `report` has all figures except the tree and the findings. `totals`, `changes` and `node_of`, which is the node in
/// the folded tree, are by node of the whole tree. `pages` has the holders of pages, if they are known.
std::vector<Finding> find_findings(const Recording& recording, const Report& report, const TotalsByNode& totals,
                                   const ChangesByNode& changes, const std::vector<NodeNumber>& node_of,
                                   const HeldPages& pages);

}  // namespace cmt::report
