#pragma once

#include <string>

#include "cmtreport/diff/diff_report.h"
#include "cmtreport/input/read_traces.h"

namespace cmt::report {

/// Reads two traces at the same time, and tells what changed from the first to the second: by function, matched by name
/// (analysis/differences/merged_stacks.h), where both have call stacks, else by size. Throws FormatError and
/// std::system_error.
DiffReport compare_traces(const std::string& before, const std::string& after, const ReadSettings& settings);

/// The findings of a report that has all else; `differences` by function, or without stacks by size, one for each
/// figure that is told of.
std::vector<DiffFinding> find_changes(const DiffReport& report, const std::vector<analysis::Difference>& differences);

/// One screen of 24 lines for people.
std::string to_text(const DiffReport& report);

}  // namespace cmt::report
