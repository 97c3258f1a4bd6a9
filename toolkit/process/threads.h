#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/process/proc_file.h"

namespace cmt::process {

/// The threads of a process, ascending; the first of a process has its pid. Empty where it is gone.
std::vector<int> read_threads(int pid, const std::string& root = "/proc");

/// Where the stack of a thread that waits in the kernel ends at the moment, from the text of
/// /proc/PID/task/TID/syscall: the last number but one. Nothing for a thread that runs.
std::optional<std::uint64_t> parse_stack_pointer(std::string_view text);

/// The same from the text of /proc/PID/task/TID/stat (kstkesp, field 29 of proc(5)), which says it to some kernels'
/// owners of the process; nothing where it is hidden as 0, as since Linux 4.11 of a thread that lives.
std::optional<std::uint64_t> parse_stack_pointer_of_stat(std::string_view text);

/// Either, of a thread; nothing too where it may not be asked (it has to be one's own) or is gone.
std::optional<std::uint64_t> read_stack_pointer(const ProcessFolder& process, int thread, std::string& buffer);

}  // namespace cmt::process
