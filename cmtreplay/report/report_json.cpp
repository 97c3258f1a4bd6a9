#include <algorithm>
#include <array>
#include <limits>

#include "cmtreplay/protocol.h"
#include "cmtreplay/report/comparison.h"
#include "cmtreplay/report/report.h"
#include "cmtreplay/report/warnings.h"
#include "cmtreplay/run/machine.h"
#include "toolkit/output/fields.h"

namespace cmt::replay {
namespace {

using output::JsonWriter;
using output::write_field;
using output::write_fields;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

constexpr std::array<std::string_view, 3> order_names{"one_thread", "free", "strict"};

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

const char* clock_name(const Report& report) {
  if (report.trace.plan().facts.recorded_ns == unknown || report.options.clock == ClockRuns::none) return "system";
  return report.options.clock == ClockRuns::all ? "recorded" : "recorded in memory runs";
}

/// How the trace was replayed.
void write_mode(JsonWriter& json, const Report& report) {
  const PreparedTrace& trace = report.trace;
  output::JsonFields field(json);
  json.begin_object("mode");
  const PreparedChunks& chunks = trace.chunks();
  field("operations",
        chunks.in_memory() ? "prepared"
        : chunks.kept()    ? "spooled"
                           : "streamed",
        "prepared: in memory; spooled: in a file; streamed: planned again in each run");
  field("operations_bytes", trace.operations_bytes(), "in memory or in the file");
  field("slots", trace.plan().slots, "entries of the table of live blocks");
  field("replay_bytes", report.results.baseline.replay_bytes, "of the worker's memory, those of the replay");
  field("order", order_names[static_cast<std::size_t>(trace.plan().order)], "one_thread, free or strict");
  field("threads", trace.plan().counts.threads, "");
  field("threads_at_once", trace.plan().lanes, "");
  field("true_dependencies", trace.plan().counts.true_dependencies, "calls that need a block of another thread");
  field("false_dependencies", trace.plan().counts.false_dependencies, "points at which a thread may be too far ahead");
  field("touch", report.options.touch, "the bytes of each block that are written: page, none, first or all");
  field("pace", report.options.pace > 0 ? report.options.pace : nan, "recorded time over the replay's");
  field("clock", clock_name(report), "that allocators read: recorded, recorded in memory runs, or system");
  field("counters_missing", unless_empty(report.results.counters_missing), "why there are no hardware counters");
  field("runs", report.options.runs == 0 ? std::nullopt : std::optional(report.options.runs),
        "timed runs of each allocator that were asked for; null: as many as the medians needed");
  field("budget_ns", report.options.budget_ns,
        "spent on an allocator's timed runs, at most, unless runs were asked for");
  field("interrupted", report.results.interrupted, "");
  json.end_object();
}

/// The timed samples with a list for each figure instead of a struct for each run.
struct SampleColumns {
  std::vector<std::pair<std::string_view, std::vector<std::uint64_t>>> columns;
  std::size_t next = 0;

  void operator()(std::string_view key, std::uint64_t value, std::string_view) {
    if (next == columns.size()) columns.emplace_back(key, std::vector<std::uint64_t>());
    columns[next++].second.push_back(value);
  }
};

void write_timed(JsonWriter& json, const AllocatorResult& result, const Report& report) {
  const bool timed = !result.timed.empty();
  const TraceFacts& facts = report.trace.plan().facts;
  const double calls = static_cast<double>(facts.calls);
  const double wall_ns = spread_of(result, &TimedSample::wall_ns).median;
  const double null_ns = spread_of(report.results.baseline, &TimedSample::wall_ns).median;
  json.field("ns_per_call", timed ? wall_ns / calls : nan);
  json.field("ns_per_call_over_null",
             timed && !report.results.baseline.timed.empty() ? (wall_ns - null_ns) / calls : nan);
  json.field("user_ns_per_call", user_ns_per_call(result, facts));
  const bool has_speed_up = timed && facts.recorded_ns != unknown && wall_ns > 0;
  json.field("speed_up", has_speed_up ? static_cast<double>(facts.recorded_ns) / wall_ns : nan);
  if (!timed) return;
  SampleColumns samples;
  for (const TimedSample& sample : result.timed) {
    samples.next = 0;
    describe(samples, sample);
  }
  for (auto& [key, values] : samples.columns) write_field(json, key, spread_of(std::move(values)));
  write_field(json, "warm_up_wall_ns",
              result.warm_up ? std::optional(result.warm_up->wall_ns) : std::optional<std::uint64_t>());
  write_field(json, "wall_ns_median_95", bootstrap_median(spread_of(result, &TimedSample::wall_ns).samples));
  write_field(json, "latency", result.latencies);
  json.begin_object("counters");
  for (std::size_t i = 0; i < process::counter_names.size(); ++i)
    json.field(process::counter_names[i], median_counter(result, i));
  json.end_object();
}

void write_result(JsonWriter& json, const AllocatorResult& result, const Report& report) {
  const Allocator& allocator = result.allocator;
  output::JsonFields field(json);
  field("name", allocator.name, "");
  field("library", allocator.null ? std::nullopt : std::optional(allocator.library), "");
  field("prefix", unless_empty(allocator.prefix), "");
  field("settings", allocator.settings, "");
  field("replaced_calls", replaced_names(allocator), "");
  field("death", result.death, "");
  write_timed(json, result, report);
  if (result.memory) write_fields(json, *result.memory);
  field("memory_runs", result.memory_runs, "each of them; all figures above are of the one with the median peak");
}

}  // namespace

double mean_kernel_ns(const AllocatorResult& result) {
  double sum = 0;
  for (const TimedSample& sample : result.timed) sum += static_cast<double>(sample.kernel_ns);
  return sum / static_cast<double>(result.timed.size());
}

double user_ns_per_call(const AllocatorResult& result, const TraceFacts& facts) {
  if (result.timed.empty() || facts.calls == 0) return nan;
  const double cpu_ns = spread_of(result, &TimedSample::cpu_ns).median;
  return std::max(cpu_ns - mean_kernel_ns(result), 0.0) / static_cast<double>(facts.calls);
}

std::uint64_t refused_calls(const AllocatorResult& result) {
  return static_cast<std::uint64_t>(spread_of(result, &TimedSample::refused_calls).max);
}

std::optional<double> median_counter(const AllocatorResult& result, std::size_t counter) {
  std::vector<std::uint64_t> values;
  for (const TimedSample& sample : result.timed) {
    if (sample.counters[counter]) values.push_back(*sample.counters[counter]);
  }
  if (values.empty()) return std::nullopt;
  return spread_of(std::move(values)).median;
}

std::vector<std::string> replaced_names(const Allocator& allocator) {
  std::vector<std::string> names;
  for (int i = 0; i < call_count; ++i) {
    if (allocator.replaced >> i & 1) names.emplace_back(call_names[i]);
  }
  return names;
}

std::string json_text(const Report& report) {
  JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.replay/1");
  json.begin_object("trace");
  json.field("file", report.options.file);
  json.field("format", name(report.trace.plan().format));
  write_fields(json, report.trace.plan().facts);
  json.end_object();
  write_mode(json, report);
  write_field(json, "machine", this_machine());
  json.begin_array("allocators");
  for (const AllocatorResult& result : report.results.allocators) {
    json.begin_object();
    write_result(json, result, report);
    json.end_object();
  }
  json.end_array();
  output::JsonFields field(json);
  field("time_comparisons", compare_times(report.results.allocators), "every pair, by the time of their runs");
  field("peak_comparisons", compare_peaks(report.results.allocators), "every pair, by peak resident memory");
  field("verdict", verdict_lines(report.results.allocators), "both in words, a line each");
  field("warnings", warning_lines(report), "what was not replayed as recorded, and what stood out, a line each");
  json.begin_object("baseline");
  write_result(json, report.results.baseline, report);
  json.end_object();
  json.end_object();
  return json.take();
}

}  // namespace cmt::replay
