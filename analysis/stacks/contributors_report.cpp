// Contributors as text and as CSV.

#include <cmath>

#include "analysis/groups/rows.h"
#include "analysis/stacks/contributors.h"
#include "libcmt/text/utf8.h"
#include "toolkit/command/command_line.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::analysis {
namespace {

using output::bytes_text;
using output::counted;
using output::with_commas;

bool is_in_bytes(Metric metric) {
  return metric == Metric::bytes || metric == Metric::peak || metric == Metric::live || metric == Metric::growth ||
         metric == Metric::untouched;
}

/// Returns the title of a metric's column; empty if every table has such a column.
std::string_view own_title(Metric metric) {
  switch (metric) {
    case Metric::short_lived:
      return "short-lived";
    case Metric::other_thread:
      return "other thread";
    case Metric::reallocated:
      return "reallocated";
    case Metric::growth:
      return "growth";
    case Metric::untouched:
      return "never touched";
    default:
      return {};
  }
}

/// The head of a sampled trace.
std::string sampling_text(const Contributors& report) {
  const Sampling& sampling = *report.sampling;
  const SampledUse& total = *report.total.sampled;
  std::string text = "  estimates from " + counted(sampling.samples, "sample") + ", " +
                     with_commas(sampling.live_samples) + " of them live at the end; one per " +
                     bytes_text(sampling.first_interval);
  if (sampling.interval != sampling.first_interval) text += ", at the end per " + bytes_text(sampling.interval);
  if (sampling.lost.value_or(0) != 0)
    text += "\n  " + counted(*sampling.lost, "sample") +
            " lost, for which the recorder had no room: the estimates lack these";
  text += "\n  allocated: " + estimate_text(total.allocated) + ", " + blocks_text(total.allocated) + " blocks";
  text += "\n  peak live: " + estimate_text(total.peak) + ", at event " + with_commas(report.peak_event);
  text += "\n  live at the end: " + estimate_text(total.live);
  text += "\n  in brackets: 95 % intervals; a " + std::string(name(report.by)) + " below " +
          bytes_text(whole(unseen_below(sampling.interval))) + " can be without a sample";
  return text + "\n  not computed, since that needs all events: lifetimes, temporary and untouched blocks\n";
}

std::string head_text(const Contributors& report) {
  std::string text = command::input_name(report.name) + ": " + counted(report.events, "event");
  if (!report.slice.empty()) text += " of " + text::to_line(report.slice);
  if (report.truncated) text += ", breaks off";
  if (report.defects != 0) text += ", " + output::counted(report.defects, "defect");
  if (report.sampling) return text + "\n" + sampling_text(report);
  text +=
      "; " + output::counted(report.total.allocated.blocks, "block") + ", " + bytes_text(report.total.allocated.bytes);
  if (is_of_stacks(report.by)) text += ", of " + output::counted(report.stacks, "stack");
  text += "\n";
  text += "  peak live: " + output::counted(report.total.peak.blocks, "block") + ", " +
          bytes_text(report.total.peak.bytes) + ", at event " + with_commas(report.peak_event);
  if (report.peak_time_ns != unknown) text += " (" + output::time_text(static_cast<double>(report.peak_time_ns)) + ")";
  text += "\n";
  if (report.of_unknown_stacks.allocated.blocks != 0) {
    text += "  stack not known: " + output::counted(report.of_unknown_stacks.allocated.blocks, "block") + ", " +
            bytes_text(report.of_unknown_stacks.allocated.bytes) + "\n";
  }
  return text;
}

/// A row of the table: a contributor, one of its callers, or the sum of all.
struct ContributorRow {
  std::string name;
  const Use& self;
  const Use& inclusive;  // of a caller: self
  const Lifetimes& lifetimes;
  std::string stack = {};
  bool is_caller = false;
};

template <class Visitor, output::DescribedAs<ContributorRow> R>
void describe(Visitor& field, R& row) {
  field("name", row.name, "");
  describe_first(field, row.self);
  Prefixed<Visitor> inclusive{field, "inclusive_"};
  describe_first(inclusive, row.inclusive);
  field("lifetime_p50", lifetime_quantile(row.lifetimes, 0.5), "");
  field("lifetime_p90", lifetime_quantile(row.lifetimes, 0.9), "");
  field("lifetime_p99", lifetime_quantile(row.lifetimes, 0.99), "");
  field("stack", row.stack, "");
  describe_later(field, row.self);
}

std::string range_text(const Range& range, Metric metric) {
  const auto end = [metric](double number) { return figure_text(std::llround(number), metric); };
  return " (" + end(range.low) + " to " + end(range.high) + ")";
}

/// The figure of a sampled trace with its interval.
std::string sampled_text(const Use& use, Metric metric) {
  const SampledUse& sums = *use.sampled;
  if (metric == Metric::growth)
    return figure_text(use.growth, metric) + range_text(change95(sums.at_begin, sums.live), metric);
  if (metric == Metric::blocks) return blocks_text(sums.allocated);
  return estimate_text(metric == Metric::peak ? sums.peak : metric == Metric::live ? sums.live : sums.allocated);
}

output::Columns<ContributorRow> sampled_columns(const Contributors& report) {
  const auto text_of = [](Metric metric) {
    return [metric](const ContributorRow& row) { return sampled_text(row.self, metric); };
  };
  output::Columns<ContributorRow> columns;
  columns.add_text(std::string(name(report.by)), [](const ContributorRow& row) { return row.name; });
  columns.add_computed("at peak", text_of(Metric::peak));
  columns.add_computed("allocated", text_of(Metric::bytes));
  columns.add_computed("at end", text_of(Metric::live));
  columns.add_computed("samples",
                       [](const ContributorRow& row) { return with_commas(row.self.sampled->allocated.samples); });
  if (report.metric == Metric::blocks) columns.add_computed("allocations", text_of(Metric::blocks));
  if (report.metric == Metric::growth) columns.add_computed("growth", text_of(Metric::growth));
  if (is_of_stacks(report.by) && report.inclusive) {
    columns.add_computed("with callees", [metric = report.metric](const ContributorRow& row) {
      return row.is_caller ? std::string() : sampled_text(row.inclusive, metric);
    });
  }
  std::vector<std::string> first_out{"samples"};
  if (report.metric != Metric::live) first_out.push_back("at end");
  if (report.metric != Metric::bytes) first_out.push_back("allocated");
  columns.leave_out_first(std::move(first_out));
  return columns;
}

output::Columns<ContributorRow> contributor_columns(const Contributors& report) {
  if (report.sampling) return sampled_columns(report);
  const auto figure_of = [metric = report.metric](const Use& use) { return figure_text(use, metric); };
  output::Columns<ContributorRow> columns;
  columns.add_text(std::string(name(report.by)), [](const ContributorRow& row) { return row.name; });
  columns.add("at peak", "peak_bytes", bytes_text);
  columns.add("blocks at peak", "peak_blocks", with_commas);
  columns.add("allocated", "allocated_bytes", bytes_text);
  columns.add("allocations", "allocated_blocks", with_commas);
  columns.add("temporary", "temporary_blocks", with_commas);
  if (report.by == By::thread) {
    columns.add("frees", "freed_blocks", with_commas);
    columns.add("of others", "freed_other_thread_blocks", with_commas);
  }
  columns.add("at end", "end_live_bytes", bytes_text);
  columns.add("blocks at end", "end_live_blocks", with_commas);
  if (const std::string_view own = own_title(report.metric); !own.empty())
    columns.add_computed(std::string(own), [=](const ContributorRow& row) { return figure_of(row.self); });
  if (report.metric == Metric::reallocated) {
    columns.add("moved", "moved_blocks", with_commas);
    columns.add("copied at most", "moved_bytes", bytes_text);
  }
  if (is_of_stacks(report.by)) {
    columns.add_computed("with callees", [=](const ContributorRow& row) {
      return row.is_caller ? std::string() : figure_of(row.inclusive);
    });
  }
  std::vector<std::string> first_out{"blocks at end", "blocks at peak"};
  if (report.metric != Metric::temporary) first_out.push_back("temporary");
  if (!report.inclusive) first_out.push_back("with callees");
  if (report.metric != Metric::blocks) first_out.push_back("allocations");
  columns.leave_out_first(std::move(first_out));
  columns.leave_out_zeros();
  return columns;
}

bool has_none(const Use& use) {
  return use.allocated.blocks == 0 && use.peak.blocks == 0 && use.leaked.blocks == 0 && use.growth == 0 &&
         (use.freed == unknown || use.freed == 0);
}

std::string table_text(const Contributors& report) {
  const output::Columns<ContributorRow> columns = contributor_columns(report);
  output::Table table = columns.table();
  const TableNames names(report.by, report.contributors);
  std::uint64_t left_out = report.left_out;
  for (const Contributor& each : report.contributors) {
    if (has_none(each.self) && !report.inclusive) {  // only its callees have allocated
      ++left_out;
      continue;
    }
    table.add(columns.cells({names.text(each.name), each.self, each.inclusive, each.lifetimes}));
    add_callers_rows(names, each.callers, 1, [&](const std::string& row_name, const Use& use) {
      table.add(columns.cells({row_name, use, use, {}, {}, true}));
    });
  }
  const std::string all = "all" + (left_out == 0 ? "" : ", with " + with_commas(left_out) + " more");
  table.add(columns.cells({all, report.total, report.total, {}}));
  return table.text(terminal::table_width());
}

}  // namespace

std::string figure_text(std::int64_t figure, Metric metric) {
  const auto size = static_cast<std::uint64_t>(figure < 0 ? -figure : figure);
  return (figure < 0 ? "-" : "") + (is_in_bytes(metric) ? bytes_text(size) : with_commas(size));
}

std::string figure_text(const Use& use, Metric metric) {
  if (metric == Metric::untouched && use.untouched_bytes == unknown) return "-";
  return (use.knows(metric) ? "" : ">= ") + figure_text(use.metric(metric), metric);
}

std::string unknown_touches_text(std::uint64_t unknown_bytes) {
  return ">=: at least; of " + bytes_text(unknown_bytes) +
         " in other blocks it is not known: the recorder did not ask (cmttrace --touched=4K always asks), or the trace "
         "ends before them\n";
}

std::string unknown_text(const Use& all, Metric metric) {
  return all.knows(metric) ? std::string() : unknown_touches_text(all.untouched_unknown_bytes);
}

std::string metric_text(Metric metric) {
  switch (metric) {
    case Metric::bytes:
      return "allocated";
    case Metric::blocks:
      return "blocks allocated";
    case Metric::peak:
      return "live at the peak";
    case Metric::live:
      return "live at the end";
    case Metric::temporary:
      return "temporary blocks";
    case Metric::short_lived:
      return "short-lived blocks";
    case Metric::other_thread:
      return "blocks that another thread has ended";
    case Metric::reallocated:
      return "blocks made by a realloc of another block";
    case Metric::growth:
      return "live bytes at the end less those at the start";
    case Metric::untouched:
      return "asked for, but never touched";
  }
  return {};
}

std::string to_text(const Contributors& report) {
  std::string text = head_text(report) + "\n" + table_text(report);
  text += "\nsorted by " + metric_text(report.metric) + (report.inclusive ? ", with callees" : "") + "\n" +
          unknown_text(report.total, report.metric);
  if (report.contributors.empty()) return text;
  const Contributor& first = report.contributors.front();
  if (report.metric == Metric::growth && (report.inclusive ? first.inclusive : first.self).growth <= 0)
    return text + "nothing grows\n";
  return text + largest_stack_text(first.name, first.stack, first.stack_left_out);
}

std::string to_csv(const Contributors& report) {
  std::string text = output::csv_titles(ContributorRow{{}, report.total, report.total, {}});
  for (const Contributor& each : report.contributors) {
    const std::string stack = stack_cell(each.stack, each.stack_left_out);
    const std::string row_name = text::to_line(each.name);
    text += output::csv_row(ContributorRow{row_name, each.self, each.inclusive, each.lifetimes, stack});
    add_caller_paths(row_name, each.callers, [&](const std::string& path, const Use& use) {
      text += output::csv_row(ContributorRow{path, use, use, {}, {}, true});
    });
  }
  return text;
}

}  // namespace cmt::analysis
