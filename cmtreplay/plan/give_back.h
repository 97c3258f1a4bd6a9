/// Plans the calls that give memory back: malloc_trim, mallopt and mallctl.
#pragma once

#include "cmtreplay/plan/planner.h"

namespace cmt::replay {

/// malloc_trim, mallopt or mallctl as an operation; of other events none. A parameter that malloc.h does not name, and
/// a name of mallctl that is not in mallctl_names, is left out.
Step give_back_step(const Event& event);

}  // namespace cmt::replay
