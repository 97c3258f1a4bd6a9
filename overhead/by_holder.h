/// overhead --by: reports the holders of the pages at one moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/held_pages/page_holders.h"
#include "toolkit/trace/slice.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::overhead {

/// The moment for which the holders of the pages are reported.
struct HolderMoment {
  std::string text = "unused";  ///< the value of --at
  bool is_peak = false;
  /// The part of the trace up to the moment. If it is empty and the moment is no peak: the sample with the most unused
  /// bytes on pages.
  std::optional<trace::SliceRange> until{};

  /// Reads "unused", "peak", or an end as --slice has it: a number of events, a time, or a mark. Returns an empty value
  /// for any other text.
  static std::optional<HolderMoment> parse(const std::string& text);
};

/// The options of a report of holders.
struct HolderOptions {
  analysis::GroupOptions<analysis::PageUse> groups;
  HolderMoment moment;
  std::vector<std::string> debug_directories{};
};

/// Returns the options of --by. Throws UsageError.
HolderOptions parse_holder_options(const command::CommandLine& line, const std::string& path);

/// Prints the holders of the pages in the trace that the options name. Throws FormatError if the trace has no
/// addresses, no such moment, or no stacks although the report is by stack.
void report_holders(const trace::Options& options, const HolderOptions& holder_options, int page_shift);

}  // namespace cmt::overhead
