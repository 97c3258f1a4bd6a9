/// How many threads a tool uses: --jobs, or what affinity mask and control group allow.
#pragma once

#include <string>

#include "toolkit/command/command_line.h"

namespace cmt::command {

/// How many processors this process may use. This is the lesser of two numbers: the processors of its affinity mask
/// (taskset, a cpuset), and the quota of its control group, rounded up. At least 1.
unsigned processors_allowed();

/// The quota of the control group of this process, or of a group around it, in processors, rounded up. 0: there is no
/// quota. Reads `proc`/self/cgroup, and below `cgroups` cpu.max (version 2) and cpu.cfs_quota_us (version 1).
unsigned quota_processors(const std::string& proc = "/proc", const std::string& cgroups = "/sys/fs/cgroup");

/// `--jobs=N` of a tool that can share out its work. Its output is the same for every N.
inline const Option jobs_option{"jobs", Option::Takes::value};

/// How many threads may work at once: N of `--jobs=N`, or processors_allowed(). Throws UsageError.
unsigned jobs_of(const CommandLine& line);

}  // namespace cmt::command
