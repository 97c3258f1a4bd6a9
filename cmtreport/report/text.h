/// Writes a report as text for a terminal: cmtreport without -o and --json.
#pragma once

#include <cstddef>
#include <string>

#include "cmtreport/report/report.h"

namespace cmt::report {

/// Returns what was recorded and up to ten findings, in 80 columns. If it has more than `lines`, findings are cut.
std::string to_text(const Report& report, std::size_t lines);

}  // namespace cmt::report
