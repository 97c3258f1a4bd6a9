/// Writes a report as text for a terminal: cmtreport without -o and --json.
#pragma once

#include <string>

#include "cmtreport/report/report.h"

namespace cmt::report {

/// Returns what was recorded and up to ten findings, in a screen of 80 columns and 24 lines.
std::string to_text(const Report& report);

}  // namespace cmt::report
