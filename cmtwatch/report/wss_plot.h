#pragma once

#include <vector>

#include "cmtwatch/working_set/reuse_distance.h"
#include "cmtwatch/working_set/working_set.h"
#include "toolkit/picture/picture.h"

namespace cmt::watch {

/// The working set over time; which pages it is made of, or where that is not known which mappings; and, of pages, what
/// share of their uses a memory of so many bytes would have held.
output::Picture to_picture(const WssOptions& options, const WssMethod& method, const std::vector<WorkingSet>& sets,
                           const ReuseDistance& reuse);

}  // namespace cmt::watch
