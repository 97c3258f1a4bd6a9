// Contributors as text and as CSV.

#include "libcmt/text/utf8.h"
#include "lifetimes/stacks/contributors.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::lifetimes {
namespace {

using output::bytes_text;
using output::with_commas;

bool is_in_bytes(Metric metric) { return metric != Metric::blocks && metric != Metric::temporary; }

std::string figure_text(std::uint64_t figure, Metric metric) {
  return is_in_bytes(metric) ? bytes_text(figure) : with_commas(figure);
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
  }
  return {};
}

std::string head_text(const Contributors& report) {
  std::string text = report.name + ": " + with_commas(report.events) + " events";
  if (report.truncated) text += ", breaks off";
  if (report.defects != 0) text += ", " + with_commas(report.defects) + " defects";
  text += "; " + output::counted(report.total.allocated.blocks, "block") + ", " +
          bytes_text(report.total.allocated.bytes) + ", of " + output::counted(report.stacks, "stack") + "\n";
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

std::string table_text(const Contributors& report) {
  const std::string title = report.by == By::caller ? "function <- caller" : std::string(name(report.by));
  output::Table table(
      {"at peak", "blocks", "allocated", "blocks", "temporary", "at end", "blocks", "with callees", title}, {8});
  const auto add_row = [&](const std::string& row_name, const Use& self, const Use& inclusive) {
    table.add({bytes_text(self.peak.bytes), with_commas(self.peak.blocks), bytes_text(self.allocated.bytes),
               with_commas(self.allocated.blocks), with_commas(self.temporary), bytes_text(self.leaked.bytes),
               with_commas(self.leaked.blocks), figure_text(inclusive.metric(report.metric), report.metric), row_name});
  };
  for (const Contributor& each : report.contributors) add_row(text::to_line(each.name), each.self, each.inclusive);
  add_row("all" + (report.left_out == 0 ? "" : ", with " + with_commas(report.left_out) + " more"), report.total,
          report.total);
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
  const Contributor& contributor;
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
  describe(field, row.contributor.self);
  Prefixed<Visitor> inclusive{field, "inclusive_"};
  describe(inclusive, row.contributor.inclusive);
  field("stack", row.stack, "");
}

}  // namespace

std::string to_text(const Contributors& report) {
  std::string text = head_text(report) + "\n" + table_text(report);
  text += "\nsorted by " + metric_text(report.metric) + (report.inclusive ? ", with callees" : "") + "\n";
  return text + stack_text(report);
}

std::string to_csv(const Contributors& report) {
  const Contributor none;
  std::string text = output::csv_titles(ContributorRow{{}, none, {}});
  for (const Contributor& each : report.contributors) {
    std::string stack;
    for (std::size_t i = each.stack.size(); i-- != 0;) {
      stack += (stack.empty() ? "" : ";") + part_text(each.stack[i].function);
      if (i == inner_lines_max && each.stack_left_out != 0) stack += ";...";
    }
    text += output::csv_row(ContributorRow{text::to_line(each.name), each, stack});
  }
  return text;
}

}  // namespace cmt::lifetimes
