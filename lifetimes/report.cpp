// Writes the summary of lifetimes as text and as CSV.

#include <functional>
#include <optional>

#include "lifetimes/summary.h"
#include "toolkit/command/command_line.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::lifetimes {
namespace {

using output::counted;
using output::percent_text;
using output::with_commas;

std::string age_text(std::uint64_t age, heap::Clock::Unit clock) {
  return clock == heap::Clock::Unit::time ? output::time_text(static_cast<double>(age)) : with_commas(age);
}

/// The unit of ages that age_text() does not name itself: " events", " bytes".
std::string unit_text(const Summary& summary) {
  return summary.clock == heap::Clock::Unit::time ? "" : " " + std::string(unit_name(summary.clock));
}

std::string amount_text(const Amount& amount) {
  return counted(amount.blocks, "block") + ", " + counted(amount.bytes, "byte");
}

std::string input_text(const Input& input) {
  std::string text = command::input_name(input.name) + ": " + counted(input.events, "event");
  if (input.truncated) text += ", breaks off";
  if (input.lost) text += ", " + output::with_commas(*input.lost) + " lost";
  if (input.defects != 0) text += ", " + counted(input.defects, "defect");
  text += "\n  peak live: " + amount_text(input.peak.live) + ", at event " + with_commas(input.peak.event);
  if (input.peak.time_ns != unknown) text += " (" + output::time_text(static_cast<double>(input.peak.time_ns)) + ")";
  if (input.touched_min != unknown) {
    text += "\n  of that never touched, at least: " + counted(input.peak.untouched_bytes, "byte") +
            ", of blocks from " + output::bytes_text(input.touched_min);
  }
  if (input.pauses)
    text +=
        "\n  the recording was paused " + counted(*input.pauses, "time") + ": blocks freed in a pause count as live";
  if (!input.memory.empty()) text += "\n  memory: " + input.memory;
  return text + "\n";
}

/// Returns the bounds of the peak that several inputs had together.
std::string bounds_text(const Summary& summary) {
  if (summary.inputs.size() < 2) return {};
  return "peak live of all: from " + with_commas(summary.peak_bytes_max()) + " to " +
         counted(summary.peak_sum().bytes, "byte") + "\n";
}

std::string moves_text(const Summary& summary) {
  if (summary.moved == unknown) return {};
  return counted(summary.moved, "realloc") + " moved the block, and copied at most " +
         counted(summary.moved_bytes, "byte") + "\n";
}

std::string totals_text(const Summary& summary) {
  const SizeSummary all = summary.total();
  std::uint64_t chains = 0;
  for (const std::uint64_t count : summary.chains) chains += count;
  output::Table table({"blocks", "number", "share"});
  const auto row = [&](const std::string& title, std::uint64_t count, std::uint64_t whole) {
    table.add({title, with_commas(count), percent_text(count, whole)});
  };
  row("allocated", all.allocated.blocks, all.allocated.blocks);
  row("alive at the end", all.leaked.blocks, all.allocated.blocks);
  row("ended", all.ended, all.allocated.blocks);
  const std::string bound = age_text(short_lived_max(summary.clock), summary.clock) + unit_text(summary);
  row("  after " + bound + " or less", all.short_lived, all.ended);
  row("  temporary: freed by the thread's next event", all.temporary, all.ended);
  row("  by another thread", all.other_thread, all.ended);
  row("reallocation chains, the longest of " + with_commas(summary.chain_max), chains, all.allocated.blocks);
  row("frees of unknown blocks", summary.unknown_ends, 0);
  row("refused", summary.failed, 0);
  return table.text() + moves_text(summary);
}

/// A class of sizes, or all of them. CSV has the fields in another order than JSON, and the unit of lifetimes in keys.
struct SizeRow {
  const SizeSummary& size;
  std::string unit;
  std::string name = {};
  Amount peak = {};  // of all inputs
};

std::string lifetime_prefix(const std::string& unit) { return "lifetime_" + unit + "_"; }

template <class Visitor, output::DescribedAs<SizeRow> R>
void describe(Visitor& field, R& row) {
  const std::string prefix = lifetime_prefix(row.unit);
  describe_counts(field, row.size);
  describe_quantiles(field, row.size, prefix);
  field(prefix + "max", row.size.ended == 0 ? std::nullopt : std::optional(row.size.lifetime_max),
        "the longest lifetime");
  describe_leaks(field, row.size);
  describe_untouched(field, row.size);
  field("untouched_unknown_bytes", row.size.untouched_unknown_bytes, untouched_unknown_doc);
}

/// "-" if nothing is known of the class, ">= 8.93 MiB" if that is the least.
std::string untouched_text(const SizeSummary& size) {
  if (size.untouched_bytes == unknown || (size.untouched_bytes == 0 && size.untouched_unknown_bytes)) return "-";
  return (size.untouched_unknown_bytes ? ">= " : "") + output::bytes_text(size.untouched_bytes);
}

output::Columns<SizeRow> size_columns(const Summary& summary) {
  const std::function age = [clock = summary.clock](std::uint64_t number) { return age_text(number, clock); };
  const std::string lifetime = lifetime_prefix(std::string(unit_name(summary.clock)));
  const auto share_of_ended = [](std::uint64_t SizeSummary::*part) {
    return [part](const SizeRow& row) { return percent_text(row.size.*part, row.size.ended); };
  };
  output::Columns<SizeRow> columns;
  columns.leave_out_first({"at peak", "at end", "temporary", "p90", "p99"});
  columns.add_computed("size", [](const SizeRow& row) { return row.name; });
  columns.add("allocated", "allocated_blocks", with_commas);
  columns.add("bytes", "allocated_bytes", output::bytes_text);
  columns.add_computed("short-lived", share_of_ended(&SizeSummary::short_lived));
  columns.add_computed("temporary", share_of_ended(&SizeSummary::temporary));
  columns.add("p50", lifetime + "p50", age);
  columns.add("p90", lifetime + "p90", age);
  columns.add("p99", lifetime + "p99", age);
  columns.add("longest", lifetime + "max", age);
  columns.add_computed("at peak", [](const SizeRow& row) { return with_commas(row.peak.blocks); });
  columns.add_computed("bytes at peak", [](const SizeRow& row) { return output::bytes_text(row.peak.bytes); });
  columns.add("at end", "end_live_blocks", with_commas);
  columns.add("bytes at end", "end_live_bytes", output::bytes_text);
  if (summary.untouched_peak_sum() != unknown) {
    columns.add_computed("never touched", [](const SizeRow& row) { return untouched_text(row.size); });
  }
  return columns;
}

std::string sizes_text(const Summary& summary) {
  const std::string unit(unit_name(summary.clock));
  const output::Columns<SizeRow> columns = size_columns(summary);
  output::Table table = columns.table();
  for (std::size_t i = 0; i < SizeClasses::count; ++i) {
    const SizeSummary& size = summary.sizes[i];
    if (!size.in_use()) continue;
    SizeRow row{size, unit, output::range_text(size.size_bytes_min, size.size_bytes_max())};
    for (const Input& input : summary.inputs) row.peak += input.peak.sizes[i];
    table.add(columns.cells(row));
  }
  const SizeSummary all = summary.total();
  table.add(columns.cells({all, unit, "all", summary.peak_sum()}));
  const std::string unknown_touches =
      all.untouched_unknown_bytes ? "\n" + analysis::unknown_touches_text(*all.untouched_unknown_bytes) : "";
  return table.text(terminal::table_width()) + unknown_touches;
}

}  // namespace

std::string to_text(const Summary& summary) {
  std::string text;
  for (const Input& input : summary.inputs) text += input_text(input);
  text += bounds_text(summary);
  text += "\n" + totals_text(summary);
  const std::string unit = unit_text(summary);
  text += "\nlifetimes" + (unit.empty() ? unit : " in" + unit) +
          ", by bytes asked for; p50, p90 and p99 are up to 12.5 % too high\n\n" + sizes_text(summary);
  return text;
}

std::string to_csv(const Summary& summary) {
  const std::string unit(unit_name(summary.clock));
  std::string text = output::csv_titles(SizeRow{summary.sizes.front(), unit});
  for (const SizeSummary& size : summary.sizes) {
    if (size.in_use()) text += output::csv_row(SizeRow{size, unit});
  }
  return text;
}

}  // namespace cmt::lifetimes
