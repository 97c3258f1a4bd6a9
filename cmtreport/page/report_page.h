/// Makes one HTML page of a report, which opens without a network.
#pragma once

#include <string>
#include <string_view>

#include "toolkit/picture/packed_data.h"

namespace cmt::report {

/// The kinds of pages: a report of traces (cmt.report/1), and the difference of two traces (cmt.diff_report/1).
enum class PageOf { trace, difference };

/// The maker of a page, which the page shows at its end.
struct Maker {
  std::string version;
  std::string time;     ///< in UTC
  std::string command;  ///< that makes the same report
};

/// Returns a page with this title. `json` is the report, which the page's scripts draw.
std::string to_page(std::string_view title, picture::PackedData json, PageOf page_of = PageOf::trace,
                    const Maker& maker = {});
std::string to_page(std::string_view title, std::string_view json, PageOf page_of = PageOf::trace,
                    const Maker& maker = {});

/// Whether pages draw, which needs a build with uPlot and flame-chart-js. Other pages only say how to get these.
bool page_is_interactive();

}  // namespace cmt::report
