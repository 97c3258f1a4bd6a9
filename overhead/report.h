#pragma once

#include <string>

#include "overhead/summary.h"
#include "toolkit/picture/picture.h"

namespace cmt::overhead {

/// For people: the samples, the gaps at the peak, who pins the memory.
std::string to_text(const Summary& summary);

/// For programs: schema "cmt.overhead/1", described in report_json.cpp.
std::string to_json(const Summary& summary);

/// For spreadsheets: the samples, a line of names first.
std::string to_csv(const Summary& summary);

/// To look at. The summary has to have its plot.
output::Picture to_picture(const Summary& summary);

}  // namespace cmt::overhead
