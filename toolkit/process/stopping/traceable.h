/// Words for a process that may not be traced: its name, and the reason with the remedy.
#pragma once

#include <string>

namespace cmt::process {

/// "4711 (redis-server)"; without the name if it cannot be read.
std::string called(int pid);

/// Words the reason why ptrace(2) is refused: another process traces the target, it is another user's, Yama forbids it.
/// `error`: an errno.
std::string why_not_traceable(int tid, int error);

}  // namespace cmt::process
