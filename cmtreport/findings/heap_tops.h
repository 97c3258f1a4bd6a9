/// The findings about glibc's heaps: blocks at their top (analysis/places/heap_tops.h), and large blocks that come from
/// them since the threshold for mappings was raised (mmap_threshold.h).
#pragma once

#include <optional>
#include <vector>

#include "cmtreport/held_pages/page_pass.h"
#include "cmtreport/report/recording.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// Returns a finding if such blocks keep a MiB or more, and a tenth of the most pages that blocks were on. `node_of` is
/// the node in the folded tree, by node of `tree`.
std::optional<Finding> heap_top_finding(const HeldPages& pages, const CallTree& tree,
                                        const std::vector<NodeNumber>& node_of);

/// Returns a finding if such blocks had a MiB or more at once, and a tenth of the most pages that blocks were on.
std::optional<Finding> threshold_finding(const HeldPages& pages, const CallTree& tree,
                                         const std::vector<NodeNumber>& node_of);

}  // namespace cmt::report
