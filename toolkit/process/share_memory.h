#pragma once

namespace cmt::process {

/// Whether two processes run in one memory, as a child of vfork does until it executes a program. False where the
/// kernel does not say: kcmp(2) needs the right to trace both.
bool share_memory(int pid, int other);

}  // namespace cmt::process
