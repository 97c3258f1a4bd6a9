// A difference as text and as CSV.

#include <algorithm>
#include <cmath>

#include "analysis/differences/difference.h"
#include "analysis/groups/rows.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/terminal/terminal.h"

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
  if (total.sampled)
    return text + "; from " + output::counted(total.sampled->allocated.samples, "sample") + ": " +
           estimate_text(total.sampled->allocated) + "; peak " + estimate_text(total.sampled->peak) + "; at end " +
           estimate_text(total.sampled->live) + "\n";
  return text + "; " + output::counted(total.allocated.blocks, "block") + ", " +
         output::bytes_text(total.allocated.bytes) + "; peak " + output::bytes_text(total.peak.bytes) + "; at end " +
         output::bytes_text(total.leaked.bytes) + "; " + with_commas(total.temporary) + " temporary\n";
}

/// A row of the table: a contributor, one of its callers, or the sum of all.
struct DifferenceRow {
  std::string name;
  std::string status;
  std::optional<std::int64_t> change;
  std::optional<double> share;
  std::optional<bool> is_maybe_chance;
  const DiffUse& self;
  const DiffUse& inclusive;
  const Lifetimes& before;
  const Lifetimes& after;
  std::string stack = {};
  std::optional<Range> range = {};
};

template <class Visitor, output::DescribedAs<DifferenceRow> R>
void describe(Visitor& field, R& row) {
  field("name", row.name, "");
  field("status", row.status, "");
  field("change", row.change, "");
  if (row.range) {
    field("change_low", std::llround(row.range->low), "");
    field("change_high", std::llround(row.range->high), "");
  }
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

DifferenceRow row_of(const ChangedContributor& each) {
  return {text::to_line(each.name),
          std::string(status_of(each)),
          each.known_change(),
          each.share,
          each.is_maybe_chance,
          each.self,
          each.inclusive,
          each.before,
          each.after,
          {},
          each.range};
}

/// The row of a caller, or of the sum of all.
DifferenceRow row_of(const std::string& name, const DiffUse& use, Metric metric) {
  static const Lifetimes none;
  DifferenceRow row{name, "", use.known_change(metric), {}, {}, use, use, none, none};
  if (use.before.sampled) row.range = change_range(use, metric);
  return row;
}

output::Columns<DifferenceRow> difference_columns(const Difference& report) {
  const auto shown = [is_inclusive = report.inclusive](const DifferenceRow& row) -> const DiffUse& {
    return is_inclusive ? row.inclusive : row.self;
  };
  const auto figure_of = [metric = report.metric](const Use& use) { return figure_text(use, metric); };
  const auto change_of = [=](Metric metric) {
    return [=](const DifferenceRow& row) {
      const DiffUse& use = shown(row);
      return use.knows(metric) ? change_text(use.change(metric), metric) : std::string("-");
    };
  };
  output::Columns<DifferenceRow> columns;
  columns.add_text(std::string(name(report.by)), [](const DifferenceRow& row) { return row.name; });
  columns.add_computed("change", change_of(report.metric));
  if (report.is_sampled) {
    columns.add_computed("95 % interval", [metric = report.metric](const DifferenceRow& row) {
      if (!row.range) return std::string();
      const auto end = [metric](double number) { return change_text(std::llround(number), metric); };
      return end(row.range->low) + " to " + end(row.range->high);
    });
  }
  columns.add("share", "share", share_text, "");
  columns.add_computed("before", [=](const DifferenceRow& row) { return figure_of(shown(row).before); });
  columns.add_computed("after", [=](const DifferenceRow& row) { return figure_of(shown(row).after); });
  columns.add_computed("at peak", change_of(Metric::peak));
  columns.add_computed("allocated", change_of(Metric::bytes));
  columns.add_computed("blocks", change_of(Metric::blocks));
  columns.add_computed("at end", change_of(Metric::live));
  columns.add_computed("temporary", change_of(Metric::temporary));
  columns.add_text("", [](const DifferenceRow& row) {
    return row.is_maybe_chance.value_or(false) ? "chance?" : row.status == "changed" ? "" : row.status;
  });
  columns.leave_out_zeros();
  columns.leave_out_first({"temporary", "blocks", "allocated", "at end", "at peak"});
  return columns;
}

std::string changes_table(const Difference& report) {
  const output::Columns<DifferenceRow> columns = difference_columns(report);
  output::Table table = columns.table();
  const auto add_row = [&](const std::string& row_name, const DiffUse& use) {
    table.add(columns.cells(row_of(row_name, use, report.metric)));
  };
  const TableNames names(report.by, report.contributors);
  std::uint64_t left_out = report.left_out;
  for (const ChangedContributor& each : report.contributors) {
    if (each.change == 0 && ++left_out != 0) continue;  // only other figures have changed
    DifferenceRow row = row_of(each);
    row.name = names.text(each.name);
    table.add(columns.cells(row));
    add_callers_rows(names, each.callers, 1, add_row);
  }
  add_row("all" + (left_out == 0 ? "" : ", with " + with_commas(left_out) + " more"), report.total);
  return table.text(terminal::table_width());
}

/// States the limits of sampled traces.
std::string unseen_text(const Difference& report) {
  if (!report.unseen_below) return {};
  return "in brackets: 95 % intervals; a " + std::string(name(report.by)) + " below " +
         output::bytes_text(*report.unseen_below) + " can be without a sample\n";
}

/// Explains the mark of changes that may be chance.
std::string chance_text(const Difference& report) {
  if (report.maybe_chance == 0) return {};
  if (report.is_sampled)
    return "chance?: " + with_commas(report.maybe_chance) +
           " changed no more than two samples of the same program do (0 is in the 95 % interval); listed after all "
           "others\n";
  return "chance?: " + with_commas(report.maybe_chance) +
         " changed no more than calls in random order do (4 standard " + "deviations, with " +
         output::fixed(*report.dispersion, 2) + " times the variance of independent calls); listed after all others\n";
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

}  // namespace

std::string to_text(const Difference& report) {
  std::string text = "before: " + trace_text(report.before, report.total.before) +
                     "after:  " + trace_text(report.after, report.total.after) + unseen_text(report);
  if (!report.slice.empty()) text += "  of both " + text::to_line(report.slice) + "\n";
  if (report.contributors.empty() && report.left_out == 0) return text + "no difference\n";
  text += "\n" + changes_table(report);
  text +=
      "\nsorted by the change of " + metric_text(report.metric) + (report.inclusive ? ", with callees" : "") +
      "; share: of all changes of that figure, without their signs, " +
      figure_text(static_cast<std::int64_t>(report.change_sum), report.metric) + "\n" +
      unknown_text(report.total.before.knows(report.metric) ? report.total.after : report.total.before, report.metric);
  return text + chance_text(report) + stacks_text(report) + lifetimes_text(report);
}

std::string to_csv(const Difference& report) {
  std::string text = output::csv_titles(row_of("", report.total, report.metric));
  for (const ChangedContributor& each : report.contributors) {
    DifferenceRow row = row_of(each);
    row.stack = stack_cell(each.stack, each.stack_left_out);
    text += output::csv_row(row);
    add_caller_paths(row.name, each.callers, [&](const std::string& path, const DiffUse& use) {
      text += output::csv_row(row_of(path, use, report.metric));
    });
  }
  return text;
}

}  // namespace cmt::analysis
