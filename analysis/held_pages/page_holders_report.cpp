// Holders of pages as text and as CSV.

#include <functional>

#include "analysis/groups/rows.h"
#include "analysis/held_pages/page_holders.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::analysis {
namespace {

using output::bytes_text;
using output::with_commas;

/// "-31 B".
std::string signed_bytes_text(std::int64_t bytes) {
  return (bytes < 0 ? "-" : "") + bytes_text(static_cast<std::uint64_t>(bytes < 0 ? -bytes : bytes));
}

std::string figure_of(const PageUse& use, PageMetric metric) {
  if (metric == PageMetric::sole && use.sole_bytes == unknown) return "";
  const std::int64_t figure = use.metric(metric);
  const bool counts = metric == PageMetric::blocks || metric == PageMetric::pinned;
  return counts ? with_commas(static_cast<std::uint64_t>(figure)) : signed_bytes_text(figure);
}

/// Returns what a metric counts, to follow "sorted by".
std::string metric_words(PageMetric metric) {
  switch (metric) {
    case PageMetric::unused:
      return "bytes of their pages that no block asked for";
    case PageMetric::pages:
      return "their share of the pages";
    case PageMetric::sole:
      return "pages that would be free without them";
    case PageMetric::live:
      return "live bytes";
    case PageMetric::blocks:
      return "live blocks";
    case PageMetric::old_pages:
      return "the pages that old blocks are on";
    case PageMetric::pinned:
      return "the pages that one small old block pins";
    case PageMetric::separable:
      return "what could be given back if old blocks lay apart";
  }
  return {};
}

std::string moment_text(const PageHolders& report) {
  std::string text = "at event " + with_commas(report.event);
  if (report.time_ns != unknown) text += " (" + output::time_text(static_cast<double>(report.time_ns)) + ")";
  if (report.at == "unused" && report.pool)
    return text + ", the sample with the most " + (report.arena_bytes ? "unused bytes in arenas" : "live bytes");
  if (report.at == "unused") return text + ", the sample with the most unused bytes on pages";
  if (report.at == "peak") return text + ", the peak of live bytes";
  return text + ", --at=" + text::to_line(report.at);
}

std::string holders_head(const PageHolders& report) {
  const PageUse& total = report.total;
  std::string text = report.name + ": " + moment_text(report);
  if (report.truncated) text += "; breaks off";
  if (report.defects != 0) text += "; " + output::counted(report.defects, "defect");
  text += "\n  ";
  if (total.has_pages()) text += output::counted(report.pages(), "page") + " of " + bytes_text(report.page_size) + ": ";
  text += bytes_text(total.live_bytes) + " in " + output::counted(total.blocks, "block");
  if (is_of_stacks(report.by)) text += " of " + output::counted(report.stacks, "stack");
  if (total.has_pages()) {
    text += "; unused " + bytes_text(total.unused_bytes) + "\n";
    text += "  old blocks: on " + output::counted(total.old_page_bytes / report.page_size, "page") + ", pin " +
            with_commas(total.pinned_pages) +
            ", separable: " + bytes_text(report.separable_pages() * report.page_size) + "\n";
  } else {
    if (report.arena_bytes)
      text += "; " + output::percent_text(total.live_bytes, *report.arena_bytes) + " of " +
              bytes_text(*report.arena_bytes) + " of arenas";
    text += "\n  no pages: a trace has no addresses of the blocks of pools\n";
  }
  if (report.of_unknown_stacks.blocks != 0) {
    text += "  stack not known: " + output::counted(report.of_unknown_stacks.blocks, "block") + ", " +
            bytes_text(report.of_unknown_stacks.live_bytes) + "\n";
  }
  return text;
}

/// A row of the table: a holder, one of its callers, or the sum of all.
struct HolderRow {
  std::string name;
  const PageUse& self;
  const PageUse& inclusive;  // of a caller: self
  std::string stack = {};
  bool is_caller = false;
};

template <class Visitor, output::DescribedAs<HolderRow> R>
void describe(Visitor& field, R& row) {
  field("name", row.name, "");
  describe(field, row.self);
  Prefixed<Visitor> inclusive{field, "inclusive_"};
  describe(inclusive, row.inclusive);
  field("stack", row.stack, "");
}

output::Columns<HolderRow> holder_columns(const PageHolders& report) {
  output::Columns<HolderRow> columns;
  columns.add_text(std::string(name(report.by)), [](const HolderRow& row) { return row.name; });
  const bool has_pages = report.total.has_pages();
  const char* const all_key = has_pages ? "page_bytes" : "live_bytes";
  const std::uint64_t all = has_pages ? report.total.page_bytes : report.total.live_bytes;
  if (has_pages) columns.add("unused", "unused_bytes", bytes_text);
  columns.add("of all", all_key,
              std::function([all](std::uint64_t bytes) { return output::percent_text(bytes, all); }));
  if (has_pages) columns.add("pages", "page_bytes", bytes_text);
  columns.add("live", "live_bytes", bytes_text);
  columns.add("blocks", "blocks", with_commas);
  if (has_pages) {
    columns.add("free without", "sole_bytes", bytes_text, "");
    columns.add("old pages", "old_page_bytes", bytes_text);
    columns.add("pinned", "pinned_pages", with_commas);
    columns.add("separable", "separable_bytes", signed_bytes_text);
  } else {
    columns.add("old blocks", "old_blocks", with_commas);
    columns.add("old bytes", "old_bytes", bytes_text);
  }
  if (is_of_stacks(report.by)) {
    columns.add_computed("with callees", [metric = report.metric](const HolderRow& row) {
      return row.is_caller ? std::string() : figure_of(row.inclusive, metric);
    });
  }
  std::vector<std::string> first_out{"of all"};
  if (!has_pages) first_out.insert(first_out.end(), {"old blocks", "old bytes"});
  if (report.metric != PageMetric::old_pages) first_out.push_back("old pages");
  if (report.metric != PageMetric::pinned) first_out.push_back("pinned");
  if (report.metric != PageMetric::separable) first_out.push_back("separable");
  if (!report.inclusive) first_out.push_back("with callees");
  columns.leave_out_first(std::move(first_out));
  columns.leave_out_zeros();
  return columns;
}

std::string holders_table(const PageHolders& report) {
  const output::Columns<HolderRow> columns = holder_columns(report);
  output::Table table = columns.table();
  const TableNames names(report.by, report.holders);
  std::uint64_t left_out = report.left_out;
  for (const PageHolder& each : report.holders) {
    if (each.self.blocks == 0 && !report.inclusive) {  // only its callees hold pages
      ++left_out;
      continue;
    }
    table.add(columns.cells({names.text(each.name), each.self, each.inclusive}));
    add_callers_rows(names, each.callers, 1, [&](const std::string& row_name, const PageUse& use) {
      table.add(columns.cells({row_name, use, use, {}, true}));
    });
  }
  const std::string all = "all" + (left_out == 0 ? "" : ", with " + with_commas(left_out) + " more");
  table.add(columns.cells({all, report.total, report.total}));
  return table.text(terminal::table_width());
}

}  // namespace

std::string to_text(const PageHolders& report) {
  std::string text = holders_head(report) + "\n" + holders_table(report);
  text += "\nsorted by " + metric_words(report.metric) + (report.inclusive ? ", with callees" : "") +
          (report.total.has_pages() ? "; a page is shared evenly among its blocks\n" : "\n");
  if (report.holders.empty()) return text;
  const PageHolder& first = report.holders.front();
  return text + largest_stack_text(first.name, first.stack, first.stack_left_out);
}

std::string to_csv(const PageHolders& report) {
  const PageUse none;
  std::string text = output::csv_titles(HolderRow{{}, none, none});
  for (const PageHolder& each : report.holders) {
    const std::string row_name = text::to_line(each.name);
    text +=
        output::csv_row(HolderRow{row_name, each.self, each.inclusive, stack_cell(each.stack, each.stack_left_out)});
    add_caller_paths(row_name, each.callers, [&](const std::string& path, const PageUse& use) {
      text += output::csv_row(HolderRow{path, use, use, {}, true});
    });
  }
  return text;
}

}  // namespace cmt::analysis
