/// Plans the calls that give memory back: malloc_trim, mallopt and mallctl.
#pragma once

#include "cmtreplay/plan/planner.h"

namespace cmt::replay {

/// Plans a malloc_trim, mallopt or mallctl; other events have no operation. It leaves out a parameter that malloc.h
/// does not name, and a name of mallctl that is not in mallctl_names.
Step give_back_step(const Event& event);

}  // namespace cmt::replay
