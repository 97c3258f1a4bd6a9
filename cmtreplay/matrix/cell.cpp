// Makes a cell from the results of a session, and the key by which a cell is found.
#include "cmtreplay/matrix/cell.h"

#include <algorithm>
#include <cmath>

#include "toolkit/files/sha256.h"
#include "toolkit/output/numbers.h"

namespace cmt::replay {
namespace {

constexpr std::size_t key_digits = 8;

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// A list as one text. Different lists have different texts.
std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += std::to_string(part.size()) + ":" + part;
  return text;
}

/// CPUs as "0,2,3": each once, in rising order.
std::string list_text(std::vector<int> cpus) {
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  std::string text;
  for (const int cpu : cpus) text += (text.empty() ? "" : ",") + std::to_string(cpu);
  return text;
}

CellRuns runs_of(const AllocatorResult& result) {
  CellRuns runs{.memory = result.memory_runs};
  for (const TimedSample& sample : result.timed) {
    runs.wall_ns.push_back(sample.wall_ns);
    runs.cpu_ns.push_back(sample.cpu_ns);
    runs.kernel_ns.push_back(sample.kernel_ns);
    runs.minor_faults.push_back(sample.minor_faults);
  }
  return runs;
}

CellSeries series_of(const MemoryRun& run) {
  CellSeries series{.event = {0}, .live_bytes = {0}, .resident_bytes = {run.start_bytes}};
  const bool has_times = !run.marks.empty() && run.marks.back().mark.time_ns != unknown;
  if (has_times) series.times = CellTimes{.time_ns = {0}, .stays_ns = {0}, .clock_ns = {0}};
  for (const MarkSample& sample : run.marks) {
    series.event.push_back(sample.mark.event);
    series.live_bytes.push_back(sample.mark.live.bytes);
    series.resident_bytes.push_back(sample.memory.resident_bytes);
    if (!has_times) continue;
    const Mark& mark = sample.mark;
    series.times->time_ns.push_back(mark.time_ns == unknown ? 0 : mark.time_ns);
    series.times->stays_ns.push_back(mark.next_ns == unknown ? 0 : mark.next_ns - mark.time_ns);
    series.times->clock_ns.push_back(sample.clock_ns);
  }
  return series;
}

}  // namespace

std::string Cell::column_key() const {
  const bool is_libc = parse_allocator_name(allocator.name).name == "libc";
  return joined({allocator.name, is_libc ? "" : allocator.sha256, allocator.prefix, joined(allocator.settings)});
}

std::string cell_key(const Cell& cell) {
  const CellMode& mode = cell.mode;
  const CellPlan plan = cell.plan.value_or(CellPlan{});
  const std::string column =
      joined({cell.column_key(),
              cell.allocator.sha256,
              cell.build.value_or(""),
              mode.order,
              mode.touch,
              mode.give_back.value_or(""),
              mode.clock,
              std::to_string(mode.pace),
              std::to_string(mode.one_thread),
              mode.cpus.value_or(""),
              mode.huge_pages.value_or(""),
              std::to_string(plan.runs),
              std::to_string(plan.budget_ns),
              std::to_string(plan.memory_runs),
              std::to_string(plan.latency_runs),
              std::to_string(plan.seed),
              std::to_string(plan.timeout_s),
              plan.operations,
              cell.reference.name,
              joined(cell.reference.settings),
              cell.reference.name == "libc" ? "" : cell.reference.sha256,  // nodes may differ in libc
              cell.verification ? "verified" : "measured"});
  const std::string library = file_name_of(parse_allocator_name(cell.allocator.name).name);
  return cell.trace.sha256.substr(0, key_digits) + "." + library + "-" + files::sha256(column).substr(0, key_digits) +
         (cell.verification ? ".verified" : "");
}

std::string cell_file_name(const Cell& cell) { return file_name_of(cell.trace.name) + "-" + cell_key(cell) + ".json"; }

CellAllocator describe_allocator(const Allocator& allocator) {
  const AllocatorName asked = parse_allocator_name(allocator.name);
  std::string name = last_part(asked.name);
  for (const std::string& setting : asked.settings) name += "," + setting;
  return {.name = name,
          .library = last_part(allocator.library),
          .sha256 = allocator.library.empty() ? "" : files::sha256_of_file(allocator.library),
          .prefix = allocator.prefix,
          .settings = allocator.settings,
          .asked = asked.name.find('/') == asked.name.npos ? std::nullopt : std::optional(allocator.name)};
}

std::string build_of_replay(const std::string& worker) {
  return files::sha256(files::sha256_of_file("/proc/self/exe") + files::sha256_of_file(worker));
}

CellMode describe_mode(const ReplayOptions& options, const TraceOptions& trace) {
  const char* const clock = options.clock == ClockRuns::all      ? "recorded"
                            : options.clock == ClockRuns::memory ? "memory"
                                                                 : "none";
  return {.order = trace.strict ? "strict" : "free",
          .touch = options.touch,
          .give_back = options.counterparts ? std::optional<std::string>("counterpart") : std::nullopt,
          .clock = clock,
          .pace = options.pace,
          .one_thread = !trace.threads,
          .cpus = options.cpus.empty() ? std::nullopt : std::optional(list_text(options.cpus)),
          .huge_pages = options.huge_pages_off ? std::optional<std::string>("off") : std::nullopt};
}

CellPlan describe_plan(const ReplayOptions& options, const TraceOptions& trace, bool verifies) {
  CellPlan plan{.timeout_s = options.timeout_seconds,
                .operations = trace.prepared_bytes_max == 0                       ? "stream"
                              : trace.prepared_bytes_max == prepared_always_bytes ? "prepared"
                                                                                  : "auto"};
  if (verifies) return plan;
  plan.runs = options.runs;
  plan.budget_ns = options.runs == 0 ? options.budget_ns : 0;
  plan.memory_runs = options.runs == 0 ? options.memory_runs : std::min(options.runs, options.memory_runs);
  plan.latency_runs = options.runs == 0 ? options.latency_runs : std::min(options.runs, options.latency_runs);
  plan.seed = options.seed;
  return plan;
}

void fill_cell(Cell& cell, const AllocatorResult& result, const AllocatorResult& reference,
               const AllocatorResult& baseline, std::uint64_t events) {
  cell.runs = runs_of(result);
  cell.reference_runs = runs_of(reference);
  if (!baseline.timed.empty()) cell.null_wall_ns = spread_of(baseline, &TimedSample::wall_ns).median;
  const LatencySummary latency = result.latencies.summary(latency_malloc);
  cell.latency = {latency.samples, latency.p50, latency.p99, latency.p999, latency.max};
  if (result.memory) cell.series = series_of(*result.memory);
  cell.refused_calls = static_cast<std::uint64_t>(spread_of(result, &TimedSample::refused_calls).max);
  if (reference.death)
    cell.reference_fault = "died " + reference.death->place(events) + ": " + reference.death->text();
  else if (const double refused = spread_of(reference, &TimedSample::refused_calls).max; refused > 0)
    cell.reference_fault = "refused " + output::counted(static_cast<std::uint64_t>(refused), "call");
  cell.outcome = outcomes::measured;
  if (result.death) {
    cell.outcome = result.death->hung() ? outcomes::hung : outcomes::died;
    cell.reason = result.death->place(events) + ": " + result.death->text();
  } else if (cell.refused_calls != 0) {
    cell.outcome = outcomes::refused;
    cell.reason = "refused " + output::counted(cell.refused_calls, "call");
  }
}

}  // namespace cmt::replay
