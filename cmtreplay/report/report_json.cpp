// Makes the JSON of a replay, whose fields report_fields.h describes, and the figures that all reports share.
#include <algorithm>
#include <array>
#include <limits>

#include "cmtreplay/protocol.h"
#include "cmtreplay/report/report_fields.h"
#include "cmtreplay/report/warnings.h"

namespace cmt::replay {
namespace {

constexpr std::array<std::string_view, 3> order_names{"one_thread", "free", "strict"};

const char* operations_name(const PreparedChunks& chunks) {
  if (chunks.in_memory()) return "prepared";
  return chunks.kept() ? "spooled" : "streamed";
}

const char* clock_name(const Report& report) {
  if (report.trace.plan().facts.recorded_ns == unknown || report.options.clock == ClockRuns::none) return "system";
  return report.options.clock == ClockRuns::all ? "recorded" : "recorded in memory runs";
}

ReplayMode mode_of(const Report& report) {
  const TracePlan& plan = report.trace.plan();
  const ReplayOptions& options = report.options;
  ReplayMode mode{.operations = operations_name(report.trace.chunks()),
                  .operations_bytes = report.trace.operations_bytes(),
                  .slots = plan.slots,
                  .replay_bytes = report.results.baseline.replay_bytes,
                  .order = std::string(order_names.at(static_cast<std::size_t>(plan.order))),
                  .counts = plan.counts,
                  .lanes = plan.lanes,
                  .touch = options.touch,
                  .give_back = options.counterparts ? "counterpart" : "preloaded",
                  .clock = clock_name(report),
                  .huge_pages = options.huge_pages_off ? "off" : "system",
                  .budget_ns = options.budget_ns,
                  .interrupted = report.results.interrupted};
  if (options.pace > 0) mode.pace = options.pace;
  if (const ProgramClock clock = clock_of(report); !clock.points.empty()) mode.scaled = clock;
  if (!report.results.counters_missing.empty()) mode.counters_missing = report.results.counters_missing;
  if (options.runs != 0) mode.runs = options.runs;
  return mode;
}

}  // namespace

ProgramClock clock_of(const Report& report) {
  return report.options.clock == ClockRuns::none ? ProgramClock() : program_clock(report.trace.plan());
}

double mean_kernel_ns(const AllocatorResult& result) {
  double sum = 0;
  for (const TimedSample& sample : result.timed) sum += static_cast<double>(sample.kernel_ns);
  return sum / static_cast<double>(result.timed.size());
}

double user_ns_per_call(const AllocatorResult& result, const TraceFacts& facts) {
  if (result.timed.empty() || facts.calls == 0) return std::numeric_limits<double>::quiet_NaN();
  const double cpu_ns = spread_of(result, &TimedSample::cpu_ns).median;
  return std::max(cpu_ns - mean_kernel_ns(result), 0.0) / static_cast<double>(facts.calls);
}

double allocator_share(const Report& report) {
  const TraceFacts& facts = report.trace.plan().facts;
  const std::vector<AllocatorResult>& all = report.results.allocators;
  const auto found = std::find_if(all.begin(), all.end(), [&](const AllocatorResult& result) {
    const Allocator& own = result.allocator;
    const bool is_plain = own.settings.empty() && own.prefix.empty() && !own.null;
    const bool is_libc = facts.allocator.empty() || is_of_libc(facts.allocator);
    return is_plain && (is_libc ? own.name == "libc" : file_name_of(own.library) == facts.allocator);
  });
  const auto cpu_ns = [](const AllocatorResult& result) { return spread_of(result, &TimedSample::cpu_ns).median; };
  const bool is_known = facts.recorded_cpu_ns != unknown && facts.recorded_cpu_ns != 0 && found != all.end() &&
                        !found->death && !found->timed.empty() && !report.results.baseline.timed.empty();
  if (!is_known) return std::numeric_limits<double>::quiet_NaN();
  const double own_ns = std::max(cpu_ns(*found) - cpu_ns(report.results.baseline), 0.0);
  const double share = own_ns / static_cast<double>(facts.recorded_cpu_ns);
  return share <= 1 ? share : std::numeric_limits<double>::quiet_NaN();
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

ReportFields fields_of(const Report& report) {
  const ReplayResults& results = report.results;
  const TracePlan& plan = report.trace.plan();
  const auto of_allocator = [&](const AllocatorResult& result) {
    AllocatorFields fields{.result = result, .facts = plan.facts};
    if (!results.baseline.timed.empty())
      fields.null_wall_ns = spread_of(results.baseline, &TimedSample::wall_ns).median;
    return fields;
  };
  ReportFields fields{
      .trace = {.file = report.options.file, .format = std::string(name(plan.format)), .facts = plan.facts},
      .mode = mode_of(report),
      .machine = this_machine(),
      .times = compare_times(results.allocators),
      .peaks = compare_peaks(results.allocators),
      .verdict = verdict_lines(results.allocators),
      .allocator_share = allocator_share(report),
      .warnings = warning_lines(report),
      .baseline = of_allocator(results.baseline)};
  for (const AllocatorResult& result : results.allocators) fields.allocators.push_back(of_allocator(result));
  return fields;
}

std::string json_text(const Report& report) { return output::json_text(fields_of(report)); }

}  // namespace cmt::replay
