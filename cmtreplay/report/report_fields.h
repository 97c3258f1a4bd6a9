/// The JSON of a replay (cmt.replay/1) as described structs, in the order of its keys. report_json.cpp makes them from
/// a Report.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmtreplay/report/comparison.h"
#include "cmtreplay/report/report.h"
#include "cmtreplay/run/control/program_clock.h"
#include "cmtreplay/run/machine.h"
#include "toolkit/output/fields.h"
#include "toolkit/process/counters.h"

namespace cmt::replay {

/// The trace that was replayed.
struct TraceFields {
  std::string file = {};
  std::string format = {};
  TraceFacts facts = {};
};

template <class Visitor, output::DescribedAs<TraceFields> T>
void describe(Visitor& field, T& trace) {
  field("file", trace.file, "as the command line names it; -: standard input");
  field("format", trace.format, "of the file: text, cmt or legacy_cmt");
  describe(field, trace.facts);
}

/// How the trace was replayed.
struct ReplayMode {
  std::string operations = {};
  std::uint64_t operations_bytes = 0;
  std::uint64_t slots = 0;
  std::uint64_t replay_bytes = 0;
  std::string order = {};
  RouteCounts counts = {};
  std::uint32_t lanes = 0;
  std::string touch = {};
  std::string give_back = {};
  double pace = std::numeric_limits<double>::quiet_NaN();
  std::string clock = {};
  std::string huge_pages = {};
  std::optional<ProgramClock> scaled = {};
  std::optional<std::string> counters_missing = {};
  std::optional<unsigned> runs = {};
  std::uint64_t budget_ns = 0;
  bool interrupted = false;
};

template <class Visitor, output::DescribedAs<ReplayMode> M>
void describe(Visitor& field, M& mode) {
  field("operations", mode.operations, "prepared: in memory; spooled: in a file; streamed: planned again in each run");
  field("operations_bytes", mode.operations_bytes, "in memory or in the file");
  field("slots", mode.slots, "entries of the table of live blocks");
  field("replay_bytes", mode.replay_bytes, "of the worker's memory, those of the replay");
  field("order", mode.order, "one_thread, free or strict");
  field("threads", mode.counts.threads, "recorded threads that make calls");
  field("threads_at_once", mode.lanes, "the most threads of the replay at a time");
  field("true_dependencies", mode.counts.true_dependencies, "calls that need a block of another thread");
  field("false_dependencies", mode.counts.false_dependencies, "points at which a thread may be too far ahead");
  field("touch", mode.touch, "the bytes of each block that are written: page, none, first or all");
  field("give_back", mode.give_back,
        "how calls that give memory back are replayed: preloaded (with a prefix counterpart) or counterpart");
  field("pace", mode.pace, "recorded time over the replay's; null: as fast as possible");
  field("clock", mode.clock, "that allocators read: recorded, recorded in memory runs, or system");
  field("huge_pages", mode.huge_pages, "transparent ones: off (--huge-pages), or system: in the machine's mode");
  const auto of_scaled = [&mode](auto figure) {
    return mode.scaled ? std::optional(std::invoke(figure, *mode.scaled)) : std::nullopt;
  };
  field("clock_scale", of_scaled(&ProgramClock::scale),
        "the program's time over the recorded one, by the recorded clock; null: the trace does not say how much the "
        "threads waited");
  field("clock_waited_ns", of_scaled(&ProgramClock::waited_ns), "of the recorded time, left out: for a processor");
  field("clock_held_ns", of_scaled(&ProgramClock::held_ns), "of the recorded time, left out: for the recorder");
  field("counters_missing", mode.counters_missing, "why there are no hardware counters; null: there are");
  field("runs", mode.runs, "timed runs of each allocator that were asked for; null: as many as the medians needed");
  field("budget_ns", mode.budget_ns, "spent on an allocator's timed runs, at most, unless runs were asked for");
  field("interrupted", mode.interrupted, "whether Ctrl-C ended the replay before all runs were done");
}

/// The timed runs of an allocator, as one Spread for each figure of TimedSample.
struct TimedSpreads {
  std::vector<TimedSample> timed = {};
};

template <class Visitor, output::DescribedAs<TimedSpreads> T>
void describe(Visitor& field, T& spreads) {
  struct Column {
    std::string_view key, doc;
    std::vector<std::uint64_t> samples;
  };
  std::vector<Column> columns;
  auto add_column = [&](std::string_view key, std::uint64_t, std::string_view doc) {
    columns.push_back({key, doc, {}});
  };
  const TimedSample none;
  describe(add_column, none);
  for (const TimedSample& sample : spreads.timed) {
    auto add_sample = [&, next = std::size_t{0}](std::string_view, std::uint64_t value, std::string_view) mutable {
      columns[next++].samples.push_back(value);
    };
    describe(add_sample, sample);
  }
  for (Column& column : columns) field(column.key, spread_of(std::move(column.samples)), column.doc);
}

/// The medians of the hardware counters, in the order of counter_names.
struct CounterMedians {
  std::array<std::optional<double>, process::counter_names.size()> medians = {};
};

template <class Visitor, output::DescribedAs<CounterMedians> C>
void describe(Visitor& field, C& counters) {
  for (std::size_t i = 0; i < counters.medians.size(); ++i)
    field(process::counter_names[i], counters.medians[i], "the median of the timed runs; null: not counted");
}

/// The result of an allocator, and the figures of the trace and of the null allocator that its figures relate to.
struct AllocatorFields {
  AllocatorResult result = {};
  TraceFacts facts = {};
  double null_wall_ns = std::numeric_limits<double>::quiet_NaN();
};

/// The fields of the timed runs and of the memory run are absent if an allocator has no such run.
template <class Visitor, output::DescribedAs<AllocatorFields> A>
void describe(Visitor& field, A& fields) {
  const AllocatorResult& result = fields.result;
  const Allocator& allocator = result.allocator;
  const auto unless_empty = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  field("name", allocator.name, "as --alloc gave it");
  field("library", allocator.null ? std::nullopt : std::optional(allocator.library),
        "the file of its malloc; null: the null allocator");
  field("prefix", unless_empty(allocator.prefix), "of the names of its calls; null: they have the plain names");
  field("settings", allocator.settings, "NAME=VALUE of its environment");
  field("replaced_calls", replaced_names(allocator), "calls that the library lacks");
  field("death", result.death, "how it ended the worker; null: it did not");
  const double calls = static_cast<double>(fields.facts.calls);
  const double wall_ns =
      result.timed.empty() ? std::numeric_limits<double>::quiet_NaN() : spread_of(result, &TimedSample::wall_ns).median;
  const bool has_speed_up = wall_ns > 0 && fields.facts.recorded_ns != unknown;
  field("ns_per_call", wall_ns / calls, "the median time of the timed runs over their calls");
  field("ns_per_call_over_null", (wall_ns - fields.null_wall_ns) / calls, "the same less that of the null allocator");
  field("user_ns_per_call", user_ns_per_call(result, fields.facts),
        "processor time outside of the kernel, of the allocator and the replay");
  field(
      "speed_up",
      has_speed_up ? static_cast<double>(fields.facts.recorded_ns) / wall_ns : std::numeric_limits<double>::quiet_NaN(),
      "recorded time over the time of the replay");
  if (!result.timed.empty()) {
    const TimedSpreads spreads{result.timed};
    describe(field, spreads);
    field("warm_up_wall_ns", result.warm_up ? std::optional(result.warm_up->wall_ns) : std::nullopt,
          "of the run before the timed ones; null: there was none");
    field("wall_ns_median_95", bootstrap_median(spread_of(result, &TimedSample::wall_ns).samples), "around the median");
    field("latency", result.latencies, "how long single calls took");
    CounterMedians counters;
    for (std::size_t i = 0; i < counters.medians.size(); ++i) counters.medians[i] = median_counter(result, i);
    field("counters", counters, "hardware counters, in user mode");
  }
  if (result.memory) describe(field, *result.memory);
  field("memory_runs", result.memory_runs, "each of them; all figures above are of the one with the median peak");
}

/// The whole report. It has copies, and outlives the trace.
struct ReportFields {
  TraceFields trace = {};
  ReplayMode mode = {};
  Machine machine = {};
  std::vector<AllocatorFields> allocators = {};
  std::vector<Comparison> times = {}, peaks = {};
  std::vector<std::string> verdict = {};
  double allocator_share = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::string> warnings = {};
  AllocatorFields baseline = {};
};

template <class Visitor, output::DescribedAs<ReportFields> R>
void describe(Visitor& field, R& report) {
  field("schema", "cmt.replay/1", "the kind of report and its version");
  field("trace", report.trace, "the trace");
  field("mode", report.mode, "how it was replayed");
  field("machine", report.machine, "the machine of the replay");
  field("allocators", report.allocators, "in the order asked for");
  field("time_comparisons", report.times, "every pair, by the time of their runs");
  field("peak_comparisons", report.peaks, "every pair, by peak resident memory");
  field("verdict", report.verdict, "both in words, a line each");
  field("allocator_share", report.allocator_share,
        "of the recorded program's processor time, the part that the allocator takes, from 0 to 1: the replay's on the "
        "recorded allocator, less that on the null allocator; null: not known, or it was not replayed on that one");
  field("warnings", report.warnings, "what was not replayed as recorded, and what stood out, a line each");
  field("baseline", report.baseline, "the null allocator: the fields of an allocator");
}

ReportFields fields_of(const Report& report);

}  // namespace cmt::replay
