#pragma once

#include <string>

namespace cmt::collector {

/// Whether a thread is in a wait for any child, clones too, that lasts until there is one: wait4(-1, …, __WALL) and its
/// like. `line` is its /proc/PID/syscall.
bool is_wait_for_any(const std::string& line);

/// Whether a process does nothing but wait for its children, clones too, and has no other than `child`.
bool waits_for_only(int process, int child);

}  // namespace cmt::collector
