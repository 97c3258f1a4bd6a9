#pragma once

#include <optional>
#include <vector>

#include "cmtreport/report/fold.h"
#include "cmtreport/report/recording.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// Nodes below this share of the total of every measure are folded; where the report would be too large, more.
inline constexpr double least_share = 0.0005;

/// How many changes of measures a report has at most: some 3 MB of a page.
inline constexpr std::size_t changes_max = 600'000;

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
std::vector<NodeTotals> totals_of(const Recording& recording, const PeakPlace& peak);

/// All of the report.
Report build_report(const Recording& recording);

}  // namespace cmt::report
