// The report as text: the table, latencies and hardware counters below it, and CSV.
#include <algorithm>
#include <cmath>
#include <optional>

#include "cmtreplay/report/report.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/process/counters.h"

namespace cmt::replay {
namespace {

using output::Align;
using output::bytes_text;
using output::fixed;
using output::time_text;
using output::with_commas;

constexpr const char* none = "-";

double wall(const AllocatorResult& result) { return spread_of(result, &TimedSample::wall_ns).median; }

/// Marked where one median lies within the range of the other.
std::string time_ratio(const Spread& time, const Spread& reference) {
  if (reference.median <= 0) return none;
  const auto within = [](const Spread& a, const Spread& b) { return b.min <= a.median && a.median <= b.max; };
  const bool same = within(time, reference) || within(reference, time);
  return (same ? "~" : "") + fixed(time.median / reference.median, 2);
}

std::string ratio(double value, double reference) { return reference > 0 ? fixed(value / reference, 2) : none; }

std::string number(double value) { return std::isnan(value) ? none : fixed(value, 2); }

double peak(const AllocatorResult& result) {
  return result.memory ? static_cast<double>(result.memory->peak_bytes()) : 0;
}

std::vector<std::string> table_row(const AllocatorResult& result, const std::string& name, const AllocatorResult& first,
                                   const TraceFacts& facts) {
  std::vector<std::string> cells{name};
  if (result.timed.empty()) {
    cells.insert(cells.end(), 5, none);
  } else {
    const Spread time = spread_of(result, &TimedSample::wall_ns);
    const Spread cpu = spread_of(result, &TimedSample::cpu_ns);
    const double calls = static_cast<double>(std::max<std::uint64_t>(facts.calls, 1));
    cells.push_back(time_text(time.median));
    cells.push_back(time_text(time.min) + " - " + time_text(time.max));
    const Spread reference = spread_of(first, &TimedSample::wall_ns);
    cells.push_back(&result == &first ? ratio(time.median, time.median) : time_ratio(time, reference));
    cells.push_back(time_text(cpu.median));
    cells.push_back(fixed(time.median / calls, 1));
  }
  cells.push_back(result.memory ? bytes_text(result.memory->peak_bytes()) : none);
  cells.push_back(result.memory ? ratio(peak(result), peak(first)) : none);
  cells.push_back(result.memory ? number(result.memory->fragmentation()) : none);
  const Spread faults = spread_of(result, &TimedSample::minor_faults);
  cells.push_back(result.timed.empty() ? none : with_commas(static_cast<std::uint64_t>(faults.median)));
  return cells;
}

/// Fastest first; those that died or were not run last.
std::vector<const AllocatorResult*> fastest_first(const std::vector<AllocatorResult>& results) {
  std::vector<const AllocatorResult*> order;
  for (const AllocatorResult& result : results) order.push_back(&result);
  std::stable_sort(order.begin(), order.end(), [](const AllocatorResult* a, const AllocatorResult* b) {
    const bool a_last = a->death || a->timed.empty();
    const bool b_last = b->death || b->timed.empty();
    return a_last != b_last ? b_last : wall(*a) < wall(*b);
  });
  return order;
}

std::string spaced(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

/// Of one kind of call: p50, p99, p99.9 and the maximum.
void add_latency(std::vector<std::string>& cells, const LatencySummary& summary) {
  for (const double ns : {summary.p50, summary.p99, summary.p999, summary.max})
    cells.push_back(summary.samples == 0 ? none : fixed(ns, 0));
}

/// Hardware counters for each call.
std::string counters_text(const Report& report) {
  if (!report.counters_missing.empty()) return "no hardware counters here: " + report.counters_missing + "\n";
  std::vector<output::Table::Column> columns{{"a call"}};
  for (const std::string_view name : process::counter_names) columns.push_back({spaced(name), Align::right});
  output::Table table(columns);
  for (const AllocatorResult& result : report.results) {
    std::vector<std::string> cells{result.allocator.name};
    for (std::size_t i = 0; i < process::counter_names.size(); ++i) {
      const auto median = median_counter(result, i);
      cells.push_back(median ? fixed(*median / static_cast<double>(report.trace.facts().calls), 3) : none);
    }
    table.add(cells);
  }
  return "\n" + table.text();
}

/// A line of the CSV. Figures are texts, since each has its own number of decimals; empty: not known.
struct CsvRow {
  std::string allocator, library;
  std::optional<std::uint64_t> death_event;
  std::uint64_t runs = 0;
  std::string wall_ns_median, wall_ns_min, wall_ns_max, cpu_ns_median, ns_per_call, minor_faults_median;
  std::optional<std::uint64_t> peak_resident_bytes;
  std::string fragmentation;
  std::uint64_t peak_live_bytes = 0;
};

template <class Visitor, output::DescribedAs<CsvRow> Row>
void describe(Visitor& field, Row& row) {
  field("allocator", row.allocator, "");
  field("library", row.library, "");
  field("death_event", row.death_event, "");
  field("runs", row.runs, "");
  field("wall_ns_median", row.wall_ns_median, "");
  field("wall_ns_min", row.wall_ns_min, "");
  field("wall_ns_max", row.wall_ns_max, "");
  field("cpu_ns_median", row.cpu_ns_median, "");
  field("ns_per_call", row.ns_per_call, "");
  field("minor_faults_median", row.minor_faults_median, "");
  field("peak_resident_bytes", row.peak_resident_bytes, "");
  field("fragmentation", row.fragmentation, "");
  field("peak_live_bytes", row.peak_live_bytes, "");
}

CsvRow csv_row_of(const AllocatorResult& result, const TraceFacts& facts) {
  CsvRow row;
  row.allocator = result.allocator.name;
  row.library = result.allocator.library;
  row.runs = result.timed.size();
  row.peak_live_bytes = facts.peak_live.bytes;
  if (result.death) row.death_event = result.death->event;
  if (!result.timed.empty()) {
    const Spread wall = spread_of(result, &TimedSample::wall_ns);
    row.wall_ns_median = fixed(wall.median, 0);
    row.wall_ns_min = fixed(wall.min, 0);
    row.wall_ns_max = fixed(wall.max, 0);
    row.cpu_ns_median = fixed(spread_of(result, &TimedSample::cpu_ns).median, 0);
    row.ns_per_call = fixed(facts.calls == 0 ? 0 : wall.median / static_cast<double>(facts.calls), 2);
    row.minor_faults_median = fixed(spread_of(result, &TimedSample::minor_faults).median, 0);
  }
  if (!result.memory) return row;
  row.peak_resident_bytes = result.memory->peak_bytes();
  const double fragmentation = result.memory->fragmentation();
  if (!std::isnan(fragmentation)) row.fragmentation = fixed(fragmentation, 4);
  return row;
}

}  // namespace

std::string table_text(const Report& report) {
  const TraceFacts& facts = report.trace.facts();
  std::string text = report.file + ": " + with_commas(facts.events) + " events, " + with_commas(facts.calls) +
                     " calls replayed, at most " + bytes_text(facts.peak_live.bytes) + " live in " +
                     with_commas(facts.peak_live.blocks) + " blocks\n";
  output::Table table({{"allocator"},
                       {"time", Align::right},
                       {"spread", Align::right},
                       {"ratio", Align::right},
                       {"CPU", Align::right},
                       {"ns/call", Align::right},
                       {"peak resident", Align::right},
                       {"ratio", Align::right},
                       {"fragmentation", Align::right},
                       {"faults", Align::right}});
  const AllocatorResult& first = report.results.front();
  for (const AllocatorResult* result : fastest_first(report.results)) {
    const std::string died = result->death ? " (died)" : "";
    table.add(table_row(*result, result->allocator.name + died, first, facts));
  }
  table.add(table_row(report.baseline, "(null)", first, facts));
  return text + table.text();
}

std::string details_text(const Report& report) {
  const auto sampled = [](const AllocatorResult& result) { return result.latencies.samples() != 0; };
  if (std::none_of(report.results.begin(), report.results.end(), sampled)) return "";
  output::Table table({{"ns of one call"},
                       {"malloc p50", Align::right},
                       {"p99", Align::right},
                       {"p99.9", Align::right},
                       {"max", Align::right},
                       {"free p50", Align::right},
                       {"p99", Align::right},
                       {"p99.9", Align::right},
                       {"max", Align::right}});
  for (const AllocatorResult& result : report.results) {
    if (!sampled(result)) continue;
    std::vector<std::string> cells{result.allocator.name};
    add_latency(cells, result.latencies.summary(latency_malloc));
    add_latency(cells, result.latencies.summary(latency_free));
    table.add(cells);
  }
  return "\n" + table.text() + counters_text(report);
}

std::string csv_text(const Report& report) {
  std::string text = output::csv_titles<CsvRow>();
  for (const AllocatorResult& result : report.results)
    text += output::csv_row(csv_row_of(result, report.trace.facts()));
  return text + output::csv_row(csv_row_of(report.baseline, report.trace.facts()));
}

}  // namespace cmt::replay
