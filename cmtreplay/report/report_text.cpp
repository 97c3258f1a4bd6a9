// Writes the report as text: tables of time and memory, of latencies and of hardware counters; and as CSV.
#include <algorithm>
#include <cmath>
#include <optional>

#include "cmtreplay/report/comparison.h"
#include "cmtreplay/report/report.h"
#include "cmtreplay/report/warnings.h"
#include "toolkit/command/command_line.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/process/counters.h"

namespace cmt::replay {
namespace {

using output::bytes_text;
using output::counted;
using output::fixed;
using output::time_text;
using output::with_commas;

constexpr const char* none = "-";

double wall(const AllocatorResult& result) { return spread_of(result, &TimedSample::wall_ns).median; }

std::string ratio(double value, double reference) { return reference > 0 ? fixed(value / reference, 2) : none; }

std::string number(double value) { return std::isnan(value) ? none : fixed(value, 2); }

double peak(const AllocatorResult& result) {
  return result.memory ? static_cast<double>(result.memory->peak_bytes()) : 0;
}

/// Whether --runs asks for too few runs for an interval of 95 %. Then the table shows their range.
bool has_few_runs(const std::vector<AllocatorResult>& results) {
  return std::any_of(results.begin(), results.end(), [](const AllocatorResult& result) {
    return !result.death && result.timed.size() > 1 && result.timed.size() < runs_for_95;
  });
}

/// The interval of 95 % around the median, or the range of the runs.
std::string interval_text(const AllocatorResult& result, bool is_range) {
  if (result.timed.size() < 2) return none;
  const Spread spread = spread_of(result, &TimedSample::wall_ns);
  if (is_range) return time_text(spread.min) + " - " + time_text(spread.max);
  if (result.timed.size() < runs_for_95) return none;
  const Interval interval = bootstrap_median(spread.samples);
  return time_text(interval.low) + " - " + time_text(interval.high);
}

/// "3.05 MiB", or "3.05 - 3.21 MiB" where the runs' peaks differ by more than 1 %.
std::string peak_text(const AllocatorResult& result) {
  const auto [least, most] =
      std::minmax_element(result.memory_runs.begin(), result.memory_runs.end(), MemoryFigures::has_lower_peak);
  if (result.memory_runs.empty() || most->peak - least->peak <= least->peak / 100) return result.memory->peak_text();
  return result.memory->peak_text() + " (" + bytes_text(least->peak) + " to " + bytes_text(most->peak) + ")";
}

/// The rank of an allocator in the table. First come those whose times can be compared, then those that refused calls,
/// and last those that died or were not run.
int rank(const AllocatorResult& result) {
  if (result.death || result.timed.empty()) return 2;
  return refused_calls(result) != 0 ? 1 : 0;
}

/// The allocator that ratios are to: the first of the best rank. It is never the null allocator, which does not
/// allocate. Returns null if there is none.
const AllocatorResult* reference_of(const std::vector<AllocatorResult>& results) {
  const AllocatorResult* reference = nullptr;
  for (const AllocatorResult& result : results) {
    if (!result.allocator.null && (!reference || rank(result) < rank(*reference))) reference = &result;
  }
  return reference;
}

/// Sorts allocators by rank, and within a rank the fastest first: by the ratio that the table has.
std::vector<const AllocatorResult*> fastest_first(const std::vector<AllocatorResult>& results,
                                                  const AllocatorResult* reference) {
  std::vector<const AllocatorResult*> order;
  for (const AllocatorResult& result : results) order.push_back(&result);
  const bool has_ratios = reference && rank(*reference) < 2;
  const auto time = [&](const AllocatorResult* result) {
    return has_ratios ? time_ratio(*result, *reference) : wall(*result);
  };
  std::stable_sort(order.begin(), order.end(), [&](const AllocatorResult* a, const AllocatorResult* b) {
    return rank(*a) != rank(*b) ? rank(*a) < rank(*b) : rank(*a) < 2 && time(a) < time(b);
  });
  return order;
}

std::string name_text(const AllocatorResult& result) {
  if (result.death) return result.allocator.in_line() + " (died)";
  const std::uint64_t refused = refused_calls(result);
  return result.allocator.in_line() + (refused == 0 ? "" : " (refused " + output::counted(refused, "call") + ")");
}

/// A remark for an allocator that gives memory back by the clock: in a replay that is faster than the program it gives
/// back less.
std::string purge_text(const AllocatorResult& result, const ReplayOptions& options) {
  return purges_by_other_clock(result, options) ? " (purges by the clock)" : "";
}

/// A line on outliers with the rule of count_outliers(): runs that something else has disturbed, mostly.
std::string outliers_text(const std::vector<AllocatorResult>& results) {
  std::string text;
  for (const AllocatorResult& result : results) {
    const std::size_t outliers = outlier_runs(result);
    if (outliers == 0) continue;
    text += (text.empty() ? "outliers (more than 5.2 median absolute deviations from the median): " : ", ") +
            result.allocator.in_line() + " " + std::to_string(outliers) + " of " + std::to_string(result.timed.size()) +
            " runs";
  }
  return text.empty() ? text : text + "\n";
}

/// A line on a busy machine.
std::string busy_text(const ReplayResults& results) {
  double lost = 0, wanted = 0;
  for (const AllocatorResult& result : results.allocators) {
    lost += lost_ns(result);
    wanted += wanted_ns(result);
  }
  if (!is_busy(lost, wanted)) return "";
  return "busy machine: the runs waited for " + fixed(100 * lost / wanted, 0) +
         " % of their time, for a processor or in the allocator (load average " + fixed(results.load_average, 1) +
         ", " + counted(results.processors, "CPU") + ")\n";
}

/// A line on how much of the recorded program's time the allocator takes.
std::string share_text(const Report& report) {
  const double share = allocator_share(report);
  if (std::isnan(share)) return "";
  return "the allocator with its page faults takes about " + fixed(100 * share, share < 0.0995 ? 1 : 0) +
         " % of the recorded program's " + time_text(static_cast<double>(report.trace.plan().facts.recorded_cpu_ns)) +
         " of processor time: faster calls save at most that. An allocator also places blocks in its own way, which "
         "changes the speed of the program's code. --command measures both\n";
}

std::string spaced(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

/// Adds p50, p99, p99.9 and the maximum of one kind of call.
void add_latency(std::vector<std::string>& cells, const LatencySummary& summary) {
  for (const double ns : {summary.p50, summary.p99, summary.p999, summary.max})
    cells.push_back(summary.samples == 0 ? none : fixed(ns, 0));
}

bool has_latencies(const Report& report) {
  return std::any_of(report.results.allocators.begin(), report.results.allocators.end(),
                     [](const AllocatorResult& result) { return result.latencies.samples() != 0; });
}

/// A table of hardware counters for each call.
output::Table counters_table(const Report& report) {
  std::vector<std::string> titles{"a call"};
  for (const std::string_view name : process::counter_names) titles.push_back(spaced(name));
  output::Table table(titles);
  for (const AllocatorResult& result : report.results.allocators) {
    std::vector<std::string> cells{result.allocator.in_line()};
    for (std::size_t i = 0; i < process::counter_names.size(); ++i) {
      const auto median = median_counter(result, i);
      const double calls = static_cast<double>(report.trace.plan().facts.calls);
      cells.push_back(median && calls > 0 ? fixed(*median / calls, 3) : none);
    }
    table.add(cells);
  }
  return table;
}

/// The line in place of the table of counters.
std::string missing_text(const Report& report) {
  const std::string& missing = report.results.counters_missing;
  return missing.empty() || !has_latencies(report) ? "" : "no hardware counters here: " + missing + "\n";
}

/// A row of the CSV, and of the tables for people.
struct AllocatorRow {
  AllocatorResult result;
  TraceFacts facts;
  std::string name = {};                       ///< as the tables for people have it
  const AllocatorResult* reference = nullptr;  ///< that ratios are to; null: there is none

  bool has_times() const { return !result.timed.empty() && facts.calls != 0; }
};

/// Figures have a fixed number of decimals, and are empty if they are not known.
template <class Visitor, output::DescribedAs<AllocatorRow> Row>
void describe(Visitor& field, Row& row) {
  const AllocatorResult& result = row.result;
  const auto timed = [&result](double figure, int decimals = 0) {
    return result.timed.empty() ? std::string() : fixed(figure, decimals);
  };
  const Spread wall = spread_of(result, &TimedSample::wall_ns);
  const double calls = static_cast<double>(row.facts.calls);
  const double fragmentation = result.memory ? result.memory->fragmentation() : std::nan("");
  field("allocator", result.allocator.name, "");
  field("library", result.allocator.library, "");
  const std::uint64_t death_event = result.death ? result.death->event : 0;
  field("death", result.death ? std::optional(result.death->text()) : std::nullopt, "");
  field("death_event", death_event == 0 ? std::nullopt : std::optional(death_event), "");
  field("runs", result.timed.size(), "");
  field("wall_ns_median", timed(wall.median), "");
  field("wall_ns_min", timed(wall.min), "");
  field("wall_ns_max", timed(wall.max), "");
  field("cpu_ns_median", timed(spread_of(result, &TimedSample::cpu_ns).median), "");
  field("kernel_ns_mean", result.timed.empty() ? "" : fixed(mean_kernel_ns(result), 0), "");
  field("ns_per_call", calls > 0 ? timed(wall.median / calls, 2) : "", "");
  field("user_ns_per_call", calls > 0 ? timed(user_ns_per_call(result, row.facts), 2) : "", "");
  field("refused_calls", timed(static_cast<double>(refused_calls(result))), "");
  field("minor_faults_median", timed(spread_of(result, &TimedSample::minor_faults).median), "");
  field("peak_resident_bytes", result.memory ? std::optional(result.memory->peak_bytes()) : std::nullopt, "");
  field("start_resident_bytes", result.memory ? std::optional(result.memory->start_bytes) : std::nullopt, "");
  field("mean_resident_bytes", result.memory ? std::optional(result.memory->mean_bytes()) : std::nullopt, "");
  field("end_resident_bytes", result.memory ? std::optional(result.memory->end_bytes()) : std::nullopt, "");
  field("fragmentation", std::isnan(fragmentation) ? "" : fixed(fragmentation, 4), "");
  field("peak_live_bytes", row.facts.peak_live.bytes, "");
  field("before_teardown_resident_bytes",
        result.memory ? std::optional(result.memory->before_teardown_bytes()) : std::nullopt, "");
}

using AllocatorColumns = output::Columns<AllocatorRow>;

/// A column of the timed runs, with "-" if there are none.
void add_timed(AllocatorColumns& columns, const std::string& title, const AllocatorColumns::Cell& cell) {
  columns.add_computed(title, [cell](const AllocatorRow& row) { return row.has_times() ? cell(row) : none; });
}

/// `is_range`: the range of the runs is shown in place of an interval.
AllocatorColumns time_columns(bool is_range) {
  using Row = AllocatorRow;
  AllocatorColumns columns;
  columns.add_text("allocator", [](const Row& row) { return row.name; });
  add_timed(columns, "time", [](const Row& row) { return time_text(wall(row.result)); });
  add_timed(columns, is_range ? "range" : "95 %",
            [is_range](const Row& row) { return interval_text(row.result, is_range); });
  add_timed(columns, "ratio",
            [](const Row& row) { return row.reference ? number(time_ratio(row.result, *row.reference)) : none; });
  add_timed(columns, "CPU",
            [](const Row& row) { return time_text(spread_of(row.result, &TimedSample::cpu_ns).median); });
  add_timed(columns, "kernel", [](const Row& row) { return time_text(mean_kernel_ns(row.result)); });
  add_timed(columns, "ns/call", [](const Row& row) { return fixed(user_ns_per_call(row.result, row.facts), 1); });
  add_timed(columns, "faults", [](const Row& row) {
    return with_commas(static_cast<std::uint64_t>(spread_of(row.result, &TimedSample::minor_faults).median));
  });
  add_timed(columns, "runs", [](const Row& row) { return std::to_string(row.result.timed.size()); });
  return columns;
}

std::uint64_t huge_page_bytes(const AllocatorResult& result) {
  return result.memory ? figures_of(*result.memory).huge_pages.value_or(0) : 0;
}

AllocatorColumns memory_columns(bool has_teardown, bool has_huge_pages) {
  using Row = AllocatorRow;
  AllocatorColumns columns;
  columns.add_text("resident", [](const Row& row) { return row.name; });
  columns.add("at start", "start_resident_bytes", bytes_text);
  columns.add_computed("peak", [](const Row& row) { return row.result.memory ? peak_text(row.result) : none; });
  columns.add_computed("ratio", [](const Row& row) {
    return row.result.memory && row.reference ? ratio(peak(row.result), peak(*row.reference)) : none;
  });
  columns.add("mean", "mean_resident_bytes", bytes_text);
  if (has_teardown) columns.add("before tear-down", "before_teardown_resident_bytes", bytes_text);
  columns.add(has_teardown ? "after it" : "at end", "end_resident_bytes", bytes_text);
  columns.add_computed("fragmentation", [](const Row& row) {
    return row.result.memory ? number(row.result.memory->fragmentation()) : none;
  });
  if (has_huge_pages)
    columns.add_computed("huge pages", [](const Row& row) {
      return row.result.memory ? huge_pages_text(huge_page_bytes(row.result), row.result.memory->zero_bytes) : none;
    });
  return columns;
}

/// The line that defines the two moments of the table.
std::string teardown_text(const TraceFacts& facts) {
  if (!facts.has_teardown()) return "";
  const std::string by = facts.recorded_ns == unknown ? "; by events, since no times were recorded" : "";
  return "tear-down: after event " + with_commas(facts.before_teardown_event) + " live bytes fall for good, from " +
         bytes_text(facts.before_teardown_live_bytes) + " to " + bytes_text(facts.end_live.bytes) + by + "\n";
}

/// The line that says how the recorded clock was scaled.
std::string scaled_text(const Report& report) {
  const ProgramClock clock = clock_of(report);
  if (!clock.is_scaled() || report.results.allocators.empty()) return "";
  const auto text = [](std::uint64_t ns) { return output::time_text(static_cast<double>(ns)); };
  std::string waits = text(clock.waited_ns) + " for a processor";
  if (clock.held_ns > clock.recorded_ns / 1000) waits += " and " + text(clock.held_ns) + " for the recorder";
  return "recorded clock scaled by " + output::fixed(clock.scale(), 2) + ": of " + text(clock.recorded_ns) +
         " the threads waited " + waits + "\n";
}

/// Lines on what the tables mean, a verdict on each pair, and what made the runs differ.
std::string verdict_text(const Report& report) {
  const std::vector<AllocatorResult>& results = report.results.allocators;
  const AllocatorResult* const reference = reference_of(results);
  std::string text = teardown_text(report.trace.plan().facts) + scaled_text(report);
  if (reference && reference != &results.front()) text += "ratios are to " + reference->allocator.in_line() + "\n";
  std::string verdict;
  for (const std::string& line : verdict_lines(results)) verdict += line + "\n";
  verdict += outliers_text(results) + busy_text(report.results) + share_text(report);
  return text + (verdict.empty() ? "" : "\n" + verdict);
}

}  // namespace

std::string title_text(const Report& report) {
  const TraceFacts& facts = report.trace.plan().facts;
  const std::string live = bytes_text(facts.peak_live.bytes), touched = bytes_text(facts.peak_touched_bytes);
  const bool is_other = facts.touched_min != 0 && touched != live;
  const std::string about = facts.left_out_bytes != 0 ? "about " : "";
  return command::input_name(report.options.file) + ": " + counted(facts.events, "event") + ", " +
         counted(facts.calls, "call") + " replayed, at most " + live +
         (is_other ? " (" + about + touched + " without untouched pages)" : "") + " and at most " +
         counted(facts.peak_live.blocks, "block") + " live";
}

std::vector<output::Table> main_tables(const Report& report) {
  const TraceFacts& facts = report.trace.plan().facts;
  const std::vector<AllocatorResult>& results = report.results.allocators;
  const AllocatorResult* const reference = reference_of(results);
  std::vector<AllocatorRow> times, memory;
  for (const AllocatorResult* result : fastest_first(results, reference)) {
    const std::string name = name_text(*result);
    times.push_back({*result, facts, name, reference});
    memory.push_back({*result, facts, name + purge_text(*result, report.options), reference});
  }
  times.push_back({report.results.baseline, facts, "(null)", reference});
  const bool has_huge_pages = std::any_of(results.begin(), results.end(),
                                          [](const AllocatorResult& result) { return huge_page_bytes(result) != 0; });
  return {time_columns(has_few_runs(results)).table(times),
          memory_columns(facts.has_teardown(), has_huge_pages).table(memory)};
}

std::vector<output::Table> detail_tables(const Report& report) {
  if (!has_latencies(report)) return {};
  output::Table table({"ns of one call", "malloc p50", "p99", "p99.9", "max", "free p50", "p99", "p99.9", "max"});
  for (const AllocatorResult& result : report.results.allocators) {
    if (result.latencies.samples() == 0) continue;
    std::vector<std::string> cells{result.allocator.in_line()};
    add_latency(cells, result.latencies.summary(latency_malloc));
    add_latency(cells, result.latencies.summary(latency_free));
    table.add(cells);
  }
  if (!report.results.counters_missing.empty()) return {table};
  return {table, counters_table(report)};
}

std::string notes_text(const Report& report) { return verdict_text(report) + missing_text(report); }

std::string report_text(const Report& report) {
  const std::vector<output::Table> tables = main_tables(report);
  std::string text = title_text(report) + "\n" + tables[0].text() + "\n" + tables[1].text() + verdict_text(report);
  for (const output::Table& table : detail_tables(report)) text += "\n" + table.text();
  return text + missing_text(report);
}

std::string csv_text(const Report& report) {
  std::string text = output::csv_titles<AllocatorRow>();
  const TraceFacts& facts = report.trace.plan().facts;
  for (const AllocatorResult& result : report.results.allocators) text += output::csv_row(AllocatorRow{result, facts});
  return text + output::csv_row(AllocatorRow{report.results.baseline, facts});
}

}  // namespace cmt::replay
