#pragma once

#include <string>

#include "cmtreport/report/report.h"

namespace cmt::report {

/// For people: what was recorded, and the findings that matter, up to ten, in a screen of 80 by 24.
std::string to_text(const Report& report);

}  // namespace cmt::report
