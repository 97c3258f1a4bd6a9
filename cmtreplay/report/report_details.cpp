// What the table has no room for: latencies and hardware counters, as text and as JSON.
#include <algorithm>
#include <limits>

#include "cmtreplay/report/report.h"
#include "cmtreplay/report/report_details.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/process/counters.h"

namespace cmt::replay {
namespace {

using output::Align;
using output::fixed;

/// Of one counter, over all timed runs that have it.
std::vector<std::uint64_t> counter_samples(const Result& result, std::size_t counter) {
  std::vector<std::uint64_t> values;
  for (const TimedSample& sample : result.timed) {
    if (sample.counters[counter]) values.push_back(*sample.counters[counter]);
  }
  return values;
}

void write_latency(output::JsonWriter& json, const LatencySummary& summary) {
  json.field("samples", summary.samples);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto figure = [&](const char* name, double ns) { json.field(name, summary.samples == 0 ? nan : ns); };
  figure("p50_ns", summary.p50);
  figure("p90_ns", summary.p90);
  figure("p99_ns", summary.p99);
  figure("p999_ns", summary.p999);
  figure("max_ns", summary.max);
}

std::string spaced(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

/// Of one kind of call: p50, p99, p99.9 and the longest.
void add_latency(std::vector<std::string>& cells, const LatencySummary& summary) {
  for (const double ns : {summary.p50, summary.p99, summary.p999, summary.max})
    cells.push_back(summary.samples == 0 ? "-" : fixed(ns, 0));
}

/// Counts a call.
std::string counters_text(const Report& report) {
  if (!report.counters_missing.empty()) return "no hardware counters here: " + report.counters_missing + "\n";
  std::vector<output::Table::Column> columns{{"a call"}};
  for (const std::string_view name : process::counter_names) columns.push_back({spaced(name), Align::right});
  output::Table table(columns);
  for (const Result& result : report.results) {
    std::vector<std::string> cells{result.allocator.name};
    for (std::size_t i = 0; i < process::counter_names.size(); ++i) {
      const auto values = counter_samples(result, i);
      cells.push_back(
          values.empty() ? "-" : fixed(summarise(values).median / static_cast<double>(report.trace.facts().calls), 3));
    }
    table.add(cells);
  }
  return "\n" + table.text();
}

}  // namespace

void write_details(output::JsonWriter& json, const Result& result) {
  json.begin_object("latency");
  for (std::size_t kind = 0; kind < latency_kinds; ++kind) {
    json.begin_object(latency_names[kind]);
    write_latency(json, result.latencies.summary(static_cast<latency_kind>(kind)));
    json.end_object();
  }
  json.end_object();
  json.begin_object("counters");
  for (std::size_t i = 0; i < process::counter_names.size(); ++i) {
    const auto values = counter_samples(result, i);
    if (values.empty())
      json.field(process::counter_names[i], std::nullopt);
    else
      json.field(process::counter_names[i], summarise(values).median);
  }
  json.end_object();
}

std::string details_text(const Report& report) {
  const auto sampled = [](const Result& result) { return result.latencies.samples() != 0; };
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
  for (const Result& result : report.results) {
    if (!sampled(result)) continue;
    std::vector<std::string> cells{result.allocator.name};
    add_latency(cells, result.latencies.summary(latency_malloc));
    add_latency(cells, result.latencies.summary(latency_free));
    table.add(cells);
  }
  return "\n" + table.text() + counters_text(report);
}

}  // namespace cmt::replay
