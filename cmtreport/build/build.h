/// Builds the report of a recording: folds its tree until it fits a page, and fills in all figures and findings.
#pragma once

#include <cstddef>
#include <vector>

#include "cmtreport/held_pages/page_pass.h"
#include "cmtreport/report/changes_by_node.h"
#include "cmtreport/report/fold.h"
#include "cmtreport/report/recording.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// The most nodes and changes of measures of a report. Its page then has some 2 MB, and shows a chosen span in 100 ms.
inline constexpr FoldBudget report_max{.nodes = 28'000, .changes = 800'000};

/// Returns the figures at each moment, added up over all processes.
Moments moments_of(const Recording& recording);

/// Finds the peak of all processes.
PeakPlace peak_of(const Recording& recording, const Moments& moments);

/// The largest tree that fits report_max, with the changes of its nodes.
struct SmallTree {
  FoldedTree folded;
  AllDeltas deltas;
};
SmallTree fold_until_small(const CallTree& tree, const TotalsByNode& totals, const ChangesByNode& changes,
                           std::size_t last_moment);

/// Returns the whole report. `pages` has the holders of pages, if they are known. Takes the changes out of the
/// recording.
Report build_report(Recording& recording, const HeldPages& pages);

}  // namespace cmt::report
