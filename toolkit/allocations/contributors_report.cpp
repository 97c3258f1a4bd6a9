// Contributors as text and as CSV.

#include "libcmt/text/utf8.h"
#include "toolkit/allocations/contributors.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::allocations {
namespace {

using output::bytes_text;
using output::with_commas;

bool is_in_bytes(Metric metric) {
  return metric == Metric::bytes || metric == Metric::peak || metric == Metric::live || metric == Metric::growth ||
         metric == Metric::untouched;
}

std::string figure_text(std::int64_t figure, Metric metric) {
  const auto size = static_cast<std::uint64_t>(figure < 0 ? -figure : figure);
  return (figure < 0 ? "-" : "") + (is_in_bytes(metric) ? bytes_text(size) : with_commas(size));
}

/// The title of a metric's column, where it is none of those that every table has.
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

/// What the metric counts, behind a number: "live at the peak".
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

std::string head_text(const Contributors& report) {
  std::string text = report.name + ": " + with_commas(report.events) + " events";
  if (!report.slice.empty()) text += " of " + text::to_line(report.slice);
  if (report.truncated) text += ", breaks off";
  if (report.defects != 0) text += ", " + with_commas(report.defects) + " defects";
  text +=
      "; " + output::counted(report.total.allocated.blocks, "block") + ", " + bytes_text(report.total.allocated.bytes);
  if (is_of_stacks(report.by)) text += ", of " + output::counted(report.stacks, "stack");
  text += "\n";
  text += "  peak live: " + with_commas(report.total.peak.blocks) + " blocks, " + bytes_text(report.total.peak.bytes) +
          ", at event " + with_commas(report.peak_event);
  if (report.peak_time_ns != unknown) text += " (" + output::time_text(static_cast<double>(report.peak_time_ns)) + ")";
  text += "\n";
  if (report.of_unknown_stacks.allocated.blocks != 0) {
    text += "  stack not known: " + output::counted(report.of_unknown_stacks.allocated.blocks, "block") + ", " +
            bytes_text(report.of_unknown_stacks.allocated.bytes) + "\n";
  }
  return text;
}

/// The rows of a tree of callers. Those of a function that has several stand further in.
template <class AddRow>
void add_callers_rows(const std::vector<Caller>& callers, std::size_t level, const AddRow& add_row) {
  for (const Caller& each : callers) {
    add_row(std::string(2 * level, ' ') + "<- " + text::to_line(each.name), each.use, nullptr);
    add_callers_rows(each.callers, level + (each.callers.size() > 1 ? 1 : 0), add_row);
  }
}

std::string table_text(const Contributors& report) {
  std::vector<std::string> titles{"at peak", "blocks", "allocated", "blocks", "temporary", "at end", "blocks"};
  const std::string_view own = own_title(report.metric);
  if (!own.empty()) titles.emplace_back(own);
  const bool has_callees = is_of_stacks(report.by);
  if (has_callees) titles.emplace_back("with callees");
  titles.emplace_back(name(report.by));
  const std::size_t last = titles.size() - 1;
  output::Table table(std::move(titles), {last});
  const auto add_row = [&](const std::string& row_name, const Use& self, const Use* inclusive) {
    std::vector<std::string> cells{bytes_text(self.peak.bytes),      with_commas(self.peak.blocks),
                                   bytes_text(self.allocated.bytes), with_commas(self.allocated.blocks),
                                   with_commas(self.temporary),      bytes_text(self.leaked.bytes),
                                   with_commas(self.leaked.blocks)};
    if (!own.empty()) cells.push_back(figure_text(self.metric(report.metric), report.metric));
    if (has_callees)
      cells.push_back(inclusive == nullptr ? "" : figure_text(inclusive->metric(report.metric), report.metric));
    cells.push_back(row_name);
    table.add(std::move(cells));
  };
  for (const Contributor& each : report.contributors) {
    add_row(text::to_line(each.name), each.self, &each.inclusive);
    add_callers_rows(each.callers, 1, add_row);
  }
  add_row("all" + (report.left_out == 0 ? "" : ", with " + with_commas(report.left_out) + " more"), report.total,
          &report.total);
  return table.text();
}

std::string line_text(const StackLine& line) {
  std::string text = line.function;
  if (line.file) text += " at " + *line.file + (line.line ? ":" + std::to_string(*line.line) : "");
  return text::to_line(text + " in " + line.library);
}

std::string stack_text(const Contributors& report) {
  if (report.contributors.empty() || report.contributors.front().stack.empty()) return {};
  const Contributor& first = report.contributors.front();
  std::string text = "\nthe largest stack of " + text::to_line(first.name) + ":\n";
  for (std::size_t i = 0; i < first.stack.size(); ++i) {
    if (i == inner_lines_max && first.stack_left_out != 0)
      text += "  ... " + with_commas(first.stack_left_out) + " more ...\n";
    text += "  " + line_text(first.stack[i]) + "\n";
  }
  return text;
}

/// A row of CSV.
struct ContributorRow {
  std::string name;
  const Use& self;
  const Use& inclusive;
  const Lifetimes& lifetimes;
  std::string stack;
};

/// Prefixes the keys of the fields that it passes on.
template <class Visitor>
struct Prefixed {
  Visitor& field;
  std::string prefix;
  template <class T>
  void operator()(std::string_view key, const T& value, std::string_view doc) {
    field(prefix + std::string(key), value, doc);
  }
};

template <class Visitor, output::DescribedAs<ContributorRow> R>
void describe(Visitor& field, R& row) {
  field("name", row.name, "");
  describe(field, row.self);
  Prefixed<Visitor> inclusive{field, "inclusive_"};
  describe(inclusive, row.inclusive);
  field("lifetime_p50", lifetime_quantile(row.lifetimes, 0.5), "");
  field("lifetime_p90", lifetime_quantile(row.lifetimes, 0.9), "");
  field("lifetime_p99", lifetime_quantile(row.lifetimes, 0.99), "");
  field("stack", row.stack, "");
}

/// Rows of callers, named with the path to them: "f <- g <- main".
void add_caller_rows(std::string& text, const std::string& path, const std::vector<Caller>& callers) {
  for (const Caller& each : callers) {
    const std::string each_path = path + " <- " + text::to_line(each.name);
    text += output::csv_row(ContributorRow{each_path, each.use, each.use, {}, {}});
    add_caller_rows(text, each_path, each.callers);
  }
}

}  // namespace

std::string to_text(const Contributors& report) {
  std::string text = head_text(report) + "\n" + table_text(report);
  text += "\nsorted by " + metric_text(report.metric) + (report.inclusive ? ", with callees" : "") + "\n";
  return text + stack_text(report);
}

std::string to_csv(const Contributors& report) {
  const Use none;
  std::string text = output::csv_titles(ContributorRow{{}, none, none, {}, {}});
  for (const Contributor& each : report.contributors) {
    std::string stack;
    for (std::size_t i = each.stack.size(); i-- != 0;) {
      stack += (stack.empty() ? "" : ";") + part_text(each.stack[i].function);
      if (i == inner_lines_max && each.stack_left_out != 0) stack += ";...";
    }
    const std::string row_name = text::to_line(each.name);
    text += output::csv_row(ContributorRow{row_name, each.self, each.inclusive, each.lifetimes, stack});
    add_caller_rows(text, row_name, each.callers);
  }
  return text;
}

}  // namespace cmt::allocations
