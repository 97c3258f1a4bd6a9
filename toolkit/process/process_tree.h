#pragma once

#include <string>
#include <vector>

namespace cmt::process {

/// The pids of all processes, ascending.
std::vector<int> read_pids(const std::string& root = "/proc");

/// The children of a process, from /proc/PID/task/*/children; where the kernel has no such files (it was built without
/// CONFIG_PROC_CHILDREN), from the parents that all processes name. Empty where the process is gone. While processes
/// come and go the kernel may leave one out of a list, so a caller who must not lose one remembers those seen before.
std::vector<int> read_children(int pid, const std::string& root = "/proc");

/// The threads of a process, ascending; the first has the pid of the process. Empty where it is gone.
std::vector<int> read_threads(int pid, const std::string& root = "/proc");

/// Whether two processes run in the same memory, as a child of vfork does until it executes a program. False where the
/// kernel does not tell: kcmp(2) needs the right to trace both.
bool share_memory(int pid, int other);

}  // namespace cmt::process
