// Makes a line for each thing that was left out, refused, or disturbed.
#include "cmtreplay/report/warnings.h"

#include <cassert>
#include <string_view>

#include "cmtreplay/run/worker_process.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/numbers.h"

namespace cmt::replay {
namespace {

constexpr std::uint64_t unknown_share_divisor = 20;  // of the live bytes: less is not worth a warning

/// Whether the trace has a call of this name.
bool has_call(const TraceFacts& facts, const std::string& name) {
  for (std::size_t kind = 0; kind < facts.by_kind.size(); ++kind) {
    if (facts.by_kind[kind] != 0 && cmt::name(static_cast<Kind>(kind)) == name) return true;
  }
  return false;
}

/// `one`: the words for a count of 1.
void add_count(std::vector<Warning>& warnings, std::uint64_t count, const std::string& kind, const std::string& one) {
  if (count != 0) warnings.push_back({kind, output::with_commas(count) + " " + (count == 1 ? one : kind)});
}

void add(std::vector<Warning>& warnings, const std::string& kind) { warnings.push_back({kind, kind}); }

/// `calls`: "2 of 4 calls that give memory back".
Warning missing_calls(const std::string& calls, bool uses_counterparts) {
  if (uses_counterparts)
    return {"has no counterpart for calls that give memory back", "has no counterpart for " + calls};
  return {"does not have the functions of calls that give memory back",
          "does not have the functions of " + calls +
              ", so they do nothing, as in the program if it is preloaded; "
              "--give-back=counterpart makes its own calls instead"};
}

/// How a program fares with a call that its preloaded library lacks. Empty for the C library's reallocarray, which
/// calls the preloaded realloc.
std::string in_program_text(const std::string& name) {
  if (name == "reallocarray") return "";
  if (name == "free" || name == "realloc")
    return ". A program would give this library's blocks to the C library's " + name;
  return ". A program would get such blocks from the C library, and give them to this library's free";
}

}  // namespace

std::vector<Warning> trace_warnings(const PreparedTrace& trace, const std::string& path) {
  const TraceFacts& facts = trace.plan().facts;
  std::vector<Warning> warnings;
  add_count(warnings, facts.failed_calls, "calls were refused when recorded and are not replayed",
            "call was refused when recorded and is not replayed");
  add_count(warnings, facts.unknown_blocks,
            "events free or resize blocks that the trace does not know; such frees are not replayed",
            "event frees or resizes a block that the trace does not know; such frees are not replayed");
  add_count(warnings, facts.give_back_left_out,
            "calls of mallopt or mallctl might do more than give memory back, and are not replayed",
            "call of mallopt or mallctl might do more than give memory back, and is not replayed");
  const auto events_of = [&facts](Kind kind) { return facts.by_kind[static_cast<std::size_t>(kind)]; };
  add_count(warnings, events_of(Kind::pool_malloc) + events_of(Kind::pool_free), "events of pools are not replayed",
            "event of a pool is not replayed");
  if (facts.defects != 0)
    warnings.push_back({"defects in the trace", output::counted(facts.defects, "defect") + " in the trace"});
  if (!facts.allocator.empty() && !is_of_libc(facts.allocator))
    warnings.push_back({"was recorded with another allocator than libc's",
                        "was recorded with " + facts.allocator + ": libc is another allocator"});
  if (facts.truncated && facts.events != 0)
    add(warnings, command::missing_end(path, true, "breaks off before its end; the whole part is replayed"));
  add_count(warnings, facts.lost_events, "events that the recorder has lost are not replayed",
            "event that the recorder has lost is not replayed");
  if (!trace.chunks().kept())
    warnings.push_back({"the trace is planned again in each run",
                        trace.chunks().problem() + ": the trace is planned again in each run"});
  return warnings;
}

/// How far the program's peak may be from the replay's, because of pages that are not known.
std::string what_is_written(const TraceFacts& facts) {
  assert(facts.left_out_bytes <= facts.unknown_bytes);
  if (facts.left_out_bytes == 0) return "The replay writes all, so the program's peak may be lower by up to that much";
  const std::uint64_t written = facts.unknown_bytes - facts.left_out_bytes;
  const std::string higher = "higher by up to " + output::bytes_text(facts.left_out_bytes);
  if (written == 0)
    return "The replay writes none of them, as in the few blocks of that size that are known. The program's peak may "
           "be " +
           higher;
  return "The replay writes " + output::bytes_text(written) +
         " of them, the share of the few blocks of that size that are known. The program's peak may be lower by up to "
         "that much, or " +
         higher;
}

std::vector<Warning> memory_warnings(const PreparedTrace& trace, const ReplayOptions& options) {
  const TraceFacts& facts = trace.plan().facts;
  const bool writes_all = options.touch == "page" || options.touch == "all";
  if (!writes_all || facts.unknown_bytes <= facts.peak_live.bytes / unknown_share_divisor) return {};
  return {{"has blocks of which it does not say which pages were written",
           "does not say which pages of " + output::bytes_text(facts.unknown_bytes) + " of the " +
               output::bytes_text(facts.peak_live.bytes) + " live at the peak were written. " + what_is_written(facts) +
               "; cmttrace --touched=4K records it"}};
}

std::vector<Warning> crowd_warnings(const PreparedTrace& trace, const ReplayOptions& options) {
  if (!more_threads_than_cpus(trace, options)) return {};
  const std::string kind =
      "threads at once, more than CPUs: the times are not meaningful, and a peak depends on how threads overlap";
  return {{kind, "up to " + std::to_string(trace.plan().lanes) + " " + kind}};
}

std::vector<Warning> allocator_warnings(const AllocatorResult& result, const TraceFacts& facts,
                                        const ReplayOptions& options) {
  std::vector<Warning> warnings;
  const auto calls = [&facts](std::uint64_t count) {
    return output::with_commas(count) + " of " + output::counted(facts.give_back_calls, "call") +
           " that give memory back";
  };
  if (!result.timed.empty() && !result.allocator.null) {
    const TimedSample& sample = result.timed.front();
    if (sample.give_back_missing != 0)
      warnings.push_back(missing_calls(calls(sample.give_back_missing), uses_counterparts(options, result.allocator)));
    if (sample.give_back_failed != 0)
      warnings.push_back({"failed calls that give memory back", "failed " + calls(sample.give_back_failed)});
  }
  if (result.memory && result.memory->reads_stamps == true)
    add(warnings, "reads the processor's time stamp counter, which does not tell the recorded time");
  if (result.memory && result.memory->clock_strays != 0)
    add(warnings, "a thread of its own did not sleep by the clock, and was not waited for");
  for (const Warning& warning : emulation_warnings(result.allocator, facts)) warnings.push_back(warning);
  return warnings;
}

std::vector<Warning> emulation_warnings(const Allocator& allocator, const TraceFacts& facts) {
  std::vector<Warning> warnings;
  for (const std::string& name : replaced_names(allocator)) {
    const std::string kind = "has no " + name + "; emulated";
    if (has_call(facts, name))
      warnings.push_back({kind, kind + (allocator.prefix.empty() ? in_program_text(name) : "")});
  }
  return warnings;
}

bool purges_by_other_clock(const AllocatorResult& result, const ReplayOptions& options) {
  return result.memory && !result.memory->has_recorded_clock && options.pace != 1 && result.memory->reads_clock;
}

std::size_t outlier_runs(const AllocatorResult& result) {
  const std::vector<std::uint64_t> times = spread_of(result, &TimedSample::wall_ns).samples;
  return times.size() < 5 ? 0 : count_outliers(times);
}

double lost_ns(const AllocatorResult& result) {
  double sum = 0;
  for (const TimedSample& sample : result.timed) sum += static_cast<double>(sample.lost_ns);
  return sum;
}

double wanted_ns(const AllocatorResult& result) {
  double sum = lost_ns(result);
  for (const TimedSample& sample : result.timed) sum += static_cast<double>(sample.cpu_ns);
  return sum;
}

bool is_busy(double lost, double wanted) { return lost > wanted / 20; }

bool is_of_libc(std::string_view library) {
  return library.starts_with("libc.") || library.starts_with("libc-2.") || library.starts_with("ld-musl-");
}

std::vector<Warning> table_warnings(const AllocatorResult& result, const ReplayOptions& options) {
  std::vector<Warning> warnings;
  if (purges_by_other_clock(result, options))
    add(warnings, "purges by the clock, and read the system's: it may keep more memory than in the program");
  if (const std::size_t outliers = outlier_runs(result); outliers != 0)
    warnings.push_back(
        {"outliers among the timed runs",
         std::to_string(outliers) + " of " + std::to_string(result.timed.size()) + " timed runs are outliers"});
  const double lost = lost_ns(result), wanted = wanted_ns(result);
  const std::string busy = "of the time of the timed runs was spent waiting: a busy machine";
  if (is_busy(lost, wanted)) warnings.push_back({busy, output::fixed(100 * lost / wanted, 0) + " % " + busy});
  return warnings;
}

std::vector<std::string> warning_lines(const Report& report, bool of_tables) {
  std::vector<std::string> lines;
  const auto add_lines = [&lines](const std::string& of, const std::vector<Warning>& warnings) {
    for (const Warning& warning : warnings) lines.push_back(of + ": " + warning.text);
  };
  const std::string trace_name = command::input_name(report.options.file);
  add_lines(trace_name, trace_warnings(report.trace, report.options.file));
  add_lines(trace_name, memory_warnings(report.trace, report.options));
  add_lines(trace_name, crowd_warnings(report.trace, report.options));
  for (const AllocatorResult& result : report.results.allocators) {
    add_lines(result.allocator.name, allocator_warnings(result, report.trace.plan().facts, report.options));
    if (of_tables) add_lines(result.allocator.name, table_warnings(result, report.options));
  }
  return lines;
}

}  // namespace cmt::replay
