// The summary as text, JSON and CSV.

#include <optional>

#include "lifetimes/summary.h"
#include "toolkit/command/command_line.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::lifetimes {
namespace {

using output::counted;
using output::percent_text;
using output::with_commas;

std::string age_text(const std::optional<std::uint64_t>& age, heap::Clock::Unit clock) {
  if (!age) return "-";
  return clock == heap::Clock::Unit::time ? output::time_text(static_cast<double>(*age)) : with_commas(*age);
}

/// The unit of ages that age_text() does not name itself: " events", " bytes".
std::string unit_text(const Summary& summary) {
  return summary.clock == heap::Clock::Unit::time ? "" : " " + std::string(unit_name(summary.clock));
}

std::string amount_text(const Amount& amount) {
  return with_commas(amount.blocks) + " blocks, " + with_commas(amount.bytes) + " bytes";
}

std::string input_text(const Input& input) {
  std::string text = command::input_name(input.name) + ": " + counted(input.events, "event");
  if (input.truncated) text += ", breaks off";
  if (input.defects != 0) text += ", " + with_commas(input.defects) + " defects";
  text += "\n  peak live: " + amount_text(input.peak.live) + ", at event " + with_commas(input.peak.event);
  if (input.peak.time_ns != unknown) text += " (" + output::time_text(static_cast<double>(input.peak.time_ns)) + ")";
  if (input.touched_min != unknown) {
    text += "\n  of that never touched: " + with_commas(input.peak.untouched_bytes) + " bytes, of blocks from " +
            output::bytes_text(input.touched_min);
  }
  return text + "\n";
}

/// The bounds of the peak that several inputs had together.
std::string bounds_text(const Summary& summary) {
  if (summary.inputs.size() < 2) return {};
  return "peak live of all: from " + with_commas(summary.peak_bytes_max()) + " to " +
         with_commas(summary.peak_sum().bytes) + " bytes\n";
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
  row("ended, from before the start", summary.unknown_ends, 0);
  row("refused", summary.failed, 0);
  return table.text();
}

std::string sizes_text(const Summary& summary) {
  std::vector<std::string> titles{"size", "allocated", "bytes",   "short-lived", "temporary", "p50",  "p90",
                                  "p99",  "longest",   "at peak", "bytes",       "at end",    "bytes"};
  const bool tells_touches = summary.untouched_peak_sum() != unknown;
  if (tells_touches) titles.emplace_back("never touched");
  output::Table table(titles, {});
  const auto add_row = [&](const std::string& name, const SizeSummary& size, const Amount& peak) {
    const auto quantile = [&](double share) { return age_text(size.lifetime_quantile(share), summary.clock); };
    const std::string longest = size.ended == 0 ? "-" : age_text(size.lifetime_max, summary.clock);
    std::vector<std::string> row{name,
                                 with_commas(size.allocated.blocks),
                                 output::bytes_text(size.allocated.bytes),
                                 percent_text(size.short_lived, size.ended),
                                 percent_text(size.temporary, size.ended),
                                 quantile(0.5),
                                 quantile(0.9),
                                 quantile(0.99),
                                 longest,
                                 with_commas(peak.blocks),
                                 output::bytes_text(peak.bytes),
                                 with_commas(size.leaked.blocks),
                                 output::bytes_text(size.leaked.bytes)};
    if (tells_touches) row.push_back(size.untouched_bytes == unknown ? "-" : output::bytes_text(size.untouched_bytes));
    table.add(row);
  };
  for (std::size_t i = 0; i < SizeClasses::count; ++i) {
    const SizeSummary& size = summary.sizes[i];
    Amount peak;
    for (const Input& input : summary.inputs) peak += input.peak.sizes[i];
    if (size.in_use()) add_row(output::range_text(size.size_bytes_min, size.size_bytes_max()), size, peak);
  }
  add_row("all", summary.total(), summary.peak_sum());
  return table.text();
}

/// A row of CSV. Its titles name the unit of lifetimes, and its order is not that of the JSON.
struct CsvRow {
  const SizeSummary& size;
  std::string unit;
};

template <class Visitor, output::DescribedAs<CsvRow> R>
void describe(Visitor& field, R& row) {
  const std::string prefix = "lifetime_" + row.unit + "_";
  describe_counts(field, row.size);
  describe_quantiles(field, row.size, prefix);
  field(prefix + "max", row.size.ended == 0 ? std::nullopt : std::optional(row.size.lifetime_max),
        "the longest lifetime");
  describe_leaks(field, row.size);
  describe_untouched(field, row.size);
}

}  // namespace

std::string to_text(const Summary& summary) {
  std::string text;
  for (const Input& input : summary.inputs) text += input_text(input);
  text += bounds_text(summary);
  text += "\n" + totals_text(summary);
  const std::string unit = unit_text(summary);
  text += "\nlifetimes" + (unit.empty() ? unit : " in" + unit) + ", by bytes asked for\n\n" + sizes_text(summary);
  return text;
}

std::string to_csv(const Summary& summary) {
  const std::string unit(unit_name(summary.clock));
  std::string text = output::csv_titles(CsvRow{summary.sizes.front(), unit});
  for (const SizeSummary& size : summary.sizes) {
    if (size.in_use()) text += output::csv_row(CsvRow{size, unit});
  }
  return text;
}

}  // namespace cmt::lifetimes
