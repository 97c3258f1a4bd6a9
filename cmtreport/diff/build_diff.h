/// Builds the report of cmtreport --diff: reads two traces, matches their functions by name, and finds what changed
/// most.
#pragma once

#include <cstddef>
#include <string>

#include "cmtreport/diff/diff_report.h"
#include "cmtreport/input/read_traces.h"

namespace cmt::report {

/// Reads two traces at the same time, and reports the changes from the first to the second. If both have call stacks,
/// changes are by function, matched by name (analysis/differences/merged_stacks.h); else they are by size. Throws
/// FormatError and std::system_error.
DiffReport compare_traces(const std::string& before, const std::string& after, const ReadSettings& settings);

/// Returns the findings of a report that has all other fields. `differences` has one for each figure that findings are
/// about: by function, or without stacks by size.
std::vector<DiffFinding> find_changes(const DiffReport& report, const std::vector<analysis::Difference>& differences);

/// Returns the report as text. If it has more than `lines`, findings are cut.
std::string to_text(const DiffReport& report, std::size_t lines);

}  // namespace cmt::report
