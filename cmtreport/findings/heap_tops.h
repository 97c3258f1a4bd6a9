/// The finding about blocks at the top of glibc's heaps (analysis/places/heap_tops.h).
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

}  // namespace cmt::report
