#pragma once

#include <string>
#include <vector>

namespace cmt::process {

/// The pids of all processes, ascending.
std::vector<int> read_pids(const std::string& root = "/proc");

/// The children of a process, from /proc/PID/task/*/children; where the kernel has no such files (it was built without
/// CONFIG_PROC_CHILDREN) from the parents that all processes name. Empty for a process that is gone. While processes
/// come and go the kernel may leave one out of a list: who must not lose one keeps those that it has seen.
std::vector<int> read_children(int pid, const std::string& root = "/proc");

/// The process itself, its children, theirs and so on, parents before children. Empty where it is gone.
std::vector<int> read_descent(int pid, const std::string& root = "/proc");

}  // namespace cmt::process
