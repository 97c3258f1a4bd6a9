// Writes the head of a report, its findings, and a hint if a wrapper such as my_malloc is blamed for its callers'
// memory.

#include "cmtreport/report/text.h"

#include <algorithm>

#include "analysis/stacks/function_names/allocation_functions.h"
#include "cmtreport/report/screen.h"
#include "libcmt/text/utf8.h"
#include "toolkit/command/command_line.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::report {
namespace {

using output::bytes_text;
using output::with_commas;

constexpr std::size_t name_width = 60, hint_lines = 2;

/// The peak. For several processes it is a lower bound: their common memory is known at some moments only.
std::string peak_text(const Report& report) {
  std::string name = "peak ";
  if (report.processes.size() > 1)
    name += report.axis == "share" && !report.peak.process ? "of the sum of shares " : "at least ";
  return name + bytes_text(report.peak.live_bytes);
}

/// Small losses, which are no finding.
std::string details_text(const Process& total) {
  const Lost& lost = total.lost;
  std::string text;
  if (lost.unknown_ends != 0 && is_small_loss(lost.unknown_ends, total.events))
    text += wrapped(
        "  " + output::counted(lost.unknown_ends, "free") + " of unknown blocks, fewer than 1 in 10,000 events", 2);
  if (lost.cut_stack_bytes * 1000 >= total.allocated_bytes && lost.cut_stack_bytes != 0)
    text += wrapped("  " + output::percent_text(lost.cut_stack_bytes, total.allocated_bytes) +
                        " of the allocated bytes have stacks that are cut: their outer callers are not known",
                    2);
  return text;
}

std::string head_text(const Report& report) {
  const bool is_single = report.processes.size() == 1;
  const std::string title = is_single ? command::input_name(report.name) : report.title;
  std::string first = output::shortened(text::to_line(title), name_width) + ": " +
                      (is_single ? "" : report.name + ", ") + output::counted(report.total.events, "event");
  if (report.duration_ns != unknown) first += ", " + output::time_text(static_cast<double>(report.duration_ns));
  const std::uint64_t recorded = is_single ? report.processes[0].recorded_ns : unknown;
  if (report.duration_ns != unknown && recorded != unknown && recorded - recorded / 20 > report.duration_ns)
    first += " of " + output::time_text(static_cast<double>(recorded));
  if (report.total.truncated) first += ", breaks off";
  if (report.processes.size() == 1 && !report.processes[0].ended_by.empty())
    first += ", ended by " + report.processes[0].ended_by;
  const std::string second = "allocated " + output::counted(report.total.allocated_blocks, "block") + ", " +
                             bytes_text(report.total.allocated_bytes) + "; " + peak_text(report) +
                             (report.processes.size() > 1 ? "; when each ended " : "; at the end ") +
                             output::counted(report.total.end_live_blocks, "block") + ", " +
                             bytes_text(report.total.end_live_bytes);
  const std::string memory = is_single ? report.processes[0].memory : "";
  return wrapped(first, 2) + wrapped("  " + second, 2) + (memory.empty() ? "" : wrapped("  memory: " + memory, 2)) +
         details_text(report.total);
}

/// Whether a function that is not known as an allocation function may be one, judged by its name: my_malloc.
bool is_like_malloc(const std::string& function) {
  std::string name;
  for (const char c : function) {
    if (c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')) return false;
    name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return (name.ends_with("malloc") || name.ends_with("calloc") || name.ends_with("realloc")) &&
         !analysis::is_allocation_function(function);
}

/// The option that charges the callers of such a function.
std::string hint_text(const Report& report, std::size_t shown) {
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string& function = report.findings[i].function;
    if (is_like_malloc(function) && function.size() <= name_width)
      return wrapped("    If " + function + " only hands memory on, --skip='^" + function + "$' charges its callers.",
                     4);
  }
  return "";
}

}  // namespace

std::string to_text(const Report& report, std::size_t lines) {
  std::string text = head_text(report) + "\n";
  if (report.findings.empty()) text += "nothing stands out\n";
  std::vector<ListedFinding> findings;
  for (const Finding& finding : report.findings) findings.push_back({finding.figure, finding.headline, finding.text});
  const auto shown = numbered(findings, lines - line_count(text) - hint_lines);
  return text + shown.text + hint_text(report, shown.count);
}

}  // namespace cmt::report
