// A difference as text and as CSV.

#include <algorithm>
#include <array>

#include "analysis/differences/difference.h"
#include "analysis/groups/rows.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::analysis {
namespace {

using output::with_commas;

/// "+1.5 MiB", "-3", "0".
std::string change_text(std::int64_t change, Metric metric) {
  return (change > 0 ? "+" : "") + figure_text(change, metric);
}

std::string share_text(double share) { return (share > 0 ? "+" : "") + output::fixed(share * 100, 1) + " %"; }

std::string trace_text(const DiffTrace& trace, const Use& total) {
  std::string text = trace.name + ": " + output::counted(trace.events, "event");
  if (trace.truncated) text += ", breaks off";
  if (trace.defects != 0) text += ", " + output::counted(trace.defects, "defect");
  return text + "; " + output::counted(total.allocated.blocks, "block") + ", " +
         output::bytes_text(total.allocated.bytes) + "; peak " + output::bytes_text(total.peak.bytes) + "; at end " +
         output::bytes_text(total.leaked.bytes) + "; " + with_commas(total.temporary) + " temporary\n";
}

/// The columns of changes that every table has, before that of the figure that is sorted by.
constexpr std::array<Metric, 5> shown_metrics{Metric::peak, Metric::bytes, Metric::blocks, Metric::live,
                                              Metric::temporary};

std::string changes_table(const Difference& report) {
  std::vector<std::string> titles{"change",
                                  "share",
                                  "before",
                                  "after",
                                  "at peak",
                                  "allocated",
                                  "blocks",
                                  "at end",
                                  "temporary",
                                  "",
                                  std::string(name(report.by))};
  const std::size_t last = titles.size() - 1;
  output::Table table(std::move(titles), {last - 1, last});
  const auto add_row = [&](const std::string& row, const DiffUse& use, const std::string& share,
                           const std::string& status) {
    std::vector<std::string> cells{change_text(use.change(report.metric), report.metric), share,
                                   figure_text(use.before.metric(report.metric), report.metric),
                                   figure_text(use.after.metric(report.metric), report.metric)};
    for (const Metric metric : shown_metrics) cells.push_back(change_text(use.change(metric), metric));
    cells.push_back(status);
    cells.push_back(row);
    table.add(std::move(cells));
  };
  std::uint64_t left_out = report.left_out;
  for (const ChangedContributor& each : report.contributors) {
    if (each.change == 0 && ++left_out != 0) continue;  // only other figures have changed
    const std::string status = each.is_maybe_chance          ? "chance?"
                               : each.is_new || each.is_gone ? std::string(status_of(each))
                                                             : "";
    add_row(text::to_line(each.name), report.inclusive ? each.inclusive : each.self, share_text(each.share), status);
    add_callers_rows(each.callers, 1, [&](const std::string& row, const DiffUse& use) { add_row(row, use, "", ""); });
  }
  add_row("all" + (left_out == 0 ? "" : ", with " + with_commas(left_out) + " more that changed"), report.total, "",
          "");
  return table.text();
}

/// What the mark of changes that may be chance means.
std::string chance_text(const Difference& report) {
  if (report.maybe_chance == 0) return {};
  return "chance?: " + with_commas(report.maybe_chance) +
         " changed no more than calls in random order do (4 standard " + "deviations, with " +
         output::fixed(*report.dispersion, 2) + " times the variance of independent calls); told behind all others\n";
}

std::string lifetimes_text(const Difference& report) {
  if (report.lifetimes.empty()) return {};
  output::Table table({"lifetime, " + std::string(unit_name(report.clock)), "before", "after", "change"}, {});
  // Classes are put together by powers of ten: 0, 1, 10, 100, ...
  std::uint64_t low = 0;
  LifetimeChange sum;
  bool differs = false;
  const auto add_row = [&] {
    if (sum.before == sum.after) return;
    differs = true;
    const auto change = static_cast<std::int64_t>(sum.after - sum.before);
    table.add({with_commas(low) + " or more", with_commas(sum.before), with_commas(sum.after),
               change_text(change, Metric::blocks)});
  };
  for (const LifetimeChange& each : report.lifetimes) {
    std::uint64_t decade = each.lifetime_min == 0 ? 0 : 1;
    while (decade != 0 && each.lifetime_min / decade >= 10) decade *= 10;
    if (decade != low) {
      add_row();
      sum = {};
      low = decade;
    }
    sum.before += each.before;
    sum.after += each.after;
  }
  add_row();
  return differs ? "\nended blocks by lifetime, classes that differ\n\n" + table.text() : "";
}

std::string stacks_text(const Difference& report) {
  std::string text;
  constexpr std::size_t shown = 3, lines_max = 12;
  for (std::size_t i = 0; i < std::min(report.stacks.size(), shown); ++i) {
    const ChangedStack& changed = report.stacks[i];
    text += "\n" + change_text(changed.change, report.metric) + " in the stack\n";
    for (std::size_t line = 0; line < std::min(changed.stack.size(), lines_max); ++line)
      text += "  " + text::to_line(changed.stack[line].function + " in " + changed.stack[line].library) + "\n";
    const std::uint64_t more = changed.stack.size() + changed.stack_left_out;
    if (more > lines_max) text += "  ... " + with_commas(more - lines_max) + " more ...\n";
  }
  return text;
}

/// A row of CSV.
struct DifferenceRow {
  std::string name;
  std::string status;
  std::int64_t change;
  std::optional<double> share;
  std::optional<bool> is_maybe_chance;
  const DiffUse& self;
  const DiffUse& inclusive;
  const Lifetimes& before;
  const Lifetimes& after;
  std::string stack;
};

template <class Visitor, output::DescribedAs<DifferenceRow> R>
void describe(Visitor& field, R& row) {
  field("name", row.name, "");
  field("status", row.status, "");
  field("change", row.change, "");
  field("share", row.share, "");
  field("may_be_chance", row.is_maybe_chance, "");
  Prefixed<Visitor> before{field, "before_"}, after{field, "after_"};
  describe(before, row.self.before);
  describe(after, row.self.after);
  Prefixed<Visitor> inclusive_before{field, "inclusive_before_"}, inclusive_after{field, "inclusive_after_"};
  describe(inclusive_before, row.inclusive.before);
  describe(inclusive_after, row.inclusive.after);
  describe_lifetimes(field, row.before, row.after);
  field("stack", row.stack, "");
}

}  // namespace

std::string to_text(const Difference& report) {
  std::string text = "before: " + trace_text(report.before, report.total.before) +
                     "after:  " + trace_text(report.after, report.total.after);
  if (!report.slice.empty()) text += "  of both " + text::to_line(report.slice) + "\n";
  if (report.contributors.empty() && report.left_out == 0) return text + "no difference\n";
  text += "\n" + changes_table(report);
  text += "\nsorted by the change of " + metric_text(report.metric) + (report.inclusive ? ", with callees" : "") +
          "; share: of all changes of that figure, without their signs, " +
          figure_text(static_cast<std::int64_t>(report.change_sum), report.metric) + "\n";
  return text + chance_text(report) + stacks_text(report) + lifetimes_text(report);
}

std::string to_csv(const Difference& report) {
  const DiffUse none;
  std::string text = output::csv_titles(DifferenceRow{{}, {}, 0, {}, {}, none, none, {}, {}, {}});
  for (const ChangedContributor& each : report.contributors) {
    const std::string row_name = text::to_line(each.name);
    text += output::csv_row(DifferenceRow{row_name, std::string(status_of(each)), each.change, each.share,
                                          each.is_maybe_chance, each.self, each.inclusive, each.before, each.after,
                                          stack_cell(each.stack, each.stack_left_out)});
    add_caller_paths(row_name, each.callers, [&](const std::string& path, const DiffUse& use) {
      text += output::csv_row(DifferenceRow{path, "", use.change(report.metric), {}, {}, use, use, {}, {}, {}});
    });
  }
  return text;
}

}  // namespace cmt::analysis
