#pragma once

#include <cstddef>
#include <vector>

#include "cmtreport/held_pages/page_pass.h"
#include "cmtreport/report/changes_by_node.h"
#include "cmtreport/report/fold.h"
#include "cmtreport/report/recording.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// How many nodes and changes of measures a report has at most: a page of some 2 MB, which chooses a span in 100 ms.
inline constexpr FoldBudget report_max{.nodes = 28'000, .changes = 800'000};

/// The figures at each moment.
Moments moments_of(const Recording& recording);

/// Where the peak of all processes is.
PeakPlace peak_of(const Recording& recording, const Moments& moments);

/// The largest tree that is small enough, with the changes of its nodes.
struct SmallTree {
  FoldedTree folded;
  AllDeltas deltas;
};
SmallTree fold_until_small(const CallTree& tree, const TotalsByNode& totals, const ChangesByNode& changes,
                           std::size_t last_moment);

/// All of the report. `pages`: who holds these, where it is known. Takes the changes out of the recording.
Report build_report(Recording& recording, const HeldPages& pages);

}  // namespace cmt::report
