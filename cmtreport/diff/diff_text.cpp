// Writes the report of a difference as text for a terminal: both traces, the totals in a table, and the findings.

#include <array>

#include "cmtreport/diff/build_diff.h"
#include "cmtreport/report/screen.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::report {
namespace {

using analysis::Metric;

std::string side_text(const DiffSideFacts& side) {
  constexpr std::size_t name_width = 50;
  std::string text =
      output::shortened(text::to_line(side.name), name_width) + ": " + output::counted(side.events, "event");
  return side.truncated ? text + ", breaks off" : text;
}

std::string signed_text(std::int64_t change, Metric metric) {
  return (change > 0 ? "+" : "") + analysis::figure_text(change, metric);
}

std::string totals_text(const DiffReport& report) {
  static constexpr std::array<std::pair<Metric, const char*>, 5> rows{{{Metric::bytes, "allocated"},
                                                                       {Metric::blocks, "blocks"},
                                                                       {Metric::peak, "peak"},
                                                                       {Metric::live, "live at the end"},
                                                                       {Metric::temporary, "temporary blocks"}}};
  output::Table table({"", "before", "after", "change", ""});
  for (const auto& [metric, name] : rows) {
    const std::int64_t before = report.total.before.metric(metric), change = report.total.change(metric);
    const std::string percent =
        before <= 0 || change == 0
            ? ""
            : (change > 0 ? "+" : "") +
                  output::fixed(100 * static_cast<double>(change) / static_cast<double>(before), 1) + " %";
    table.add({name, analysis::figure_text(before, metric),
               analysis::figure_text(report.total.after.metric(metric), metric), signed_text(change, metric), percent});
  }
  return table.text();
}

}  // namespace

std::string to_text(const DiffReport& report, std::size_t lines) {
  std::string text = wrapped("before: " + side_text(report.before), 8) +
                     wrapped("after:  " + side_text(report.after), 8) + totals_text(report) + "\n";
  if (report.findings.empty()) {
    const bool is_same = !report.total.is_changed() && report.by_size.contributors.empty();
    return text + (is_same ? "no difference\n" : "nothing stands out\n");
  }
  std::vector<ListedFinding> findings;
  for (const DiffFinding& finding : report.findings)
    findings.push_back({finding.figure, finding.headline, finding.text});
  return text + numbered(findings, lines - line_count(text)).text;
}

}  // namespace cmt::report
