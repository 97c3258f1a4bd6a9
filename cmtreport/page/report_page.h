#pragma once

#include <string>
#include <string_view>

#include "toolkit/picture/packed_data.h"

/// A report as one HTML page that opens without a network.
namespace cmt::report {

/// What a page shows: a report of traces (cmt.report/1), or what changed between two (cmt.diff_report/1).
enum class PageOf { trace, difference };

/// `title` is the page's; `json` is the report, which the page's scripts draw.
std::string to_page(std::string_view title, picture::PackedData json, PageOf page_of = PageOf::trace);
std::string to_page(std::string_view title, std::string_view json, PageOf page_of = PageOf::trace);

/// Whether pages draw: whether this was built with uPlot and flame-chart-js. Else a page only says how to get them.
bool page_is_interactive();

}  // namespace cmt::report
