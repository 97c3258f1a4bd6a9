#pragma once

#include "cmtreplay/run/runs.h"

namespace cmt::replay {

/// Replays once more, and measures memory at every mark of the trace. Throws Interrupted.
void run_memory(const Stage& stage, Result& result);

}  // namespace cmt::replay
