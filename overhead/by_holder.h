#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/held_pages/page_holders.h"
#include "toolkit/trace/slice.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::overhead {

/// The moment at which the holders of the pages are told.
struct HolderMoment {
  std::string text = "unused";  ///< as it was given
  bool is_peak = false;
  std::optional<trace::SliceRange> until{};  ///< up to the moment; empty, and no peak: the sample with the most
                                             ///< unused bytes on pages

  /// "unused", "peak", or an end as --slice has it: so many events, a time, or a mark. Nothing where `text` is none of
  /// these.
  static std::optional<HolderMoment> parse(const std::string& text);
};

/// What is asked of the holders.
struct HolderOptions {
  analysis::GroupOptions<analysis::PageUse> groups;
  HolderMoment moment;
  std::vector<std::string> debug_directories{};
};

/// The options of --by. Throws UsageError.
HolderOptions parse_holder_options(const command::CommandLine& line, const std::string& path);

/// Prints who holds the pages in the trace that the options name. Throws FormatError where it has no addresses, or no
/// stacks and these are asked for, or where it has no such moment.
void report_holders(const trace::Options& options, const HolderOptions& holder_options, int page_shift);

}  // namespace cmt::overhead
