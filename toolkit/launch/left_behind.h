/// Processes of a recorded command that are still there.
#pragma once

#include <string>
#include <vector>

namespace cmt::launch {

/// The processes that were started after this one with `variable` ("NAME=VALUE") in their environment, or were forked
/// by such a process. A process that has just been started has no line in the status file yet, and its parent may have
/// ended: so it is looked for here. Leaves out collectors, processes that have ended, those of other users, and
/// commands whose children are not recorded.
std::vector<int> left_behind(const std::string& variable);

}  // namespace cmt::launch
