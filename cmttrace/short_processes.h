/// Leaves out the traces of a recording's short processes, such as the helpers of a shell script, and lists all
/// processes in one file.
#pragma once

#include <sys/types.h>
#include <string>

#include "toolkit/launch/trace_status.h"

namespace cmt::trace_launcher {

/// A process with as many allocations or live bytes, or one that lives as long, is never a short one.
inline constexpr std::uint64_t short_allocations = 10'000, short_peak_bytes = 1 << 20, short_ns = 1'000'000'000;

/// Removes the traces of short processes, and moves them to RecordedTraces::left_out. Keeps the last program of process
/// `own`, which is the command, and a trace that is not whole. If nothing else is kept, keeps the trace with the
/// highest peak.
void leave_out_short(launch::RecordedTraces& recorded, pid_t own);

/// The path of the list, beside the command's own trace: "app.processes.csv" for "app.cmt". There is a trace
/// (asserted).
std::string list_path(const launch::RecordedTraces& recorded, pid_t own);

/// Writes the list, which has a line for each process and each program that it executed. Throws std::system_error.
void write_list(const std::string& path, const launch::RecordedTraces& recorded);

}  // namespace cmt::trace_launcher
