#pragma once

#include <optional>
#include <vector>

#include "cmtreport/pages/page_pass.h"
#include "cmtreport/report/fold.h"
#include "cmtreport/report/recording.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// How many nodes and changes of measures a report has at most: a page of some 2 MB, which chooses a span in 100 ms.
inline constexpr FoldBudget report_max{.nodes = 28'000, .changes = 800'000};

/// The figures at each moment.
Moments moments_of(const Recording& recording);

/// When live bytes were at their peak: at the peak of one process, or, of several, at a moment of the axis. What
/// several had together between two moments is not known; where one had more alone than all at any moment, its peak
/// counts.
struct PeakPlace {
  std::size_t moment = 0;                ///< the first at or behind the peak
  std::optional<std::uint32_t> process;  ///< which had it alone; nothing: all together, at the moment
  std::uint64_t live_bytes = 0;
};
PeakPlace peak_of(const Recording& recording, const Moments& moments);

/// What each node's own allocations have in all, by node of the whole tree.
TotalsByNode totals_of(const Recording& recording, const PeakPlace& peak);

/// All of the report. `pages`: who holds these, where it is known.
Report build_report(const Recording& recording, const HeldPages& pages);

}  // namespace cmt::report
