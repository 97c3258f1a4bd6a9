// Copies a trace event by event, and compares two replays.
#include "cmtreplay/report/trims.h"

#include <algorithm>
#include <cmath>

#include "cmt/writer.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::replay {
namespace {

/// "12.1 MiB", or "12.1 -> 8.20 MiB" where the calls change it by more than a percent.
template <class Text>
std::string change_text(const TrimmedFigure& figure, const Text& text) {
  if (std::isnan(figure.without) || std::isnan(figure.with)) return "-";
  const bool is_same = std::abs(figure.with - figure.without) <= 0.01 * figure.without;
  return is_same ? text(figure.with) : text(figure.without) + " -> " + text(figure.with);
}

}  // namespace

std::uint64_t copy_with_trims(Reader& reader, const TrimPoints& points, std::uint64_t before_teardown, int fd) {
  Writer writer(fd, reader.header(), {.level = 1});
  std::uint64_t calls = 0, number = 0, next_ns = unknown;
  Event trim{.kind = Kind::malloc_trim};
  const auto add_trim = [&] { calls += writer.add(trim) ? 1 : 0; };
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const Event& event : events) {
      if (is_of_thread(event.kind)) trim.thread = event.thread;
      trim.time_ns = event.time_ns;
      if (points.every_ns != 0 && event.time_ns != unknown) {
        const auto every = static_cast<std::uint64_t>(points.every_ns);
        if (next_ns == unknown) next_ns = event.time_ns + every;
        if (event.time_ns >= next_ns) {
          add_trim();
          next_ns += (event.time_ns - next_ns) / every * every + every;
        }
      }
      // Before the last event, after which the memory is sampled.
      if (points.at_end && ++number == before_teardown) add_trim();
      Event copy = event;
      copy.stack = 0;
      writer.add(copy);
      if (!points.mark.empty() && event.kind == Kind::mark && event.label == points.mark) add_trim();
    }
  }
  if (points.at_end && before_teardown == 0) add_trim();
  writer.finish(reader.repairs(), reader.truncated(), reader.stretches());
  return calls;
}

void add_figures(TrimReport& report, const std::vector<AllocatorResult>& results, double TrimmedFigure::*side) {
  report.rows.resize(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const AllocatorResult& result = results[i];
    TrimRow& row = report.rows[i];
    row.name = result.allocator.name;
    if (result.timed.empty() || result.memory_runs.empty()) continue;
    row.wall_ns.*side = spread_of(result, &TimedSample::wall_ns).median;
    row.cpu_ns.*side = spread_of(result, &TimedSample::cpu_ns).median;
    row.minor_faults.*side = spread_of(result, &TimedSample::minor_faults).median;
    row.missing = static_cast<std::uint64_t>(spread_of(result, &TimedSample::give_back_missing).max);
    row.peak_bytes.*side = median_memory(result.memory_runs, &MemoryFigures::peak);
    row.mean_bytes.*side = median_memory(result.memory_runs, &MemoryFigures::mean);
    std::vector<double> ends;
    for (const MemoryFigures& run : result.memory_runs)
      ends.push_back(static_cast<double>(run.before_teardown.value_or(run.end)));
    row.end_bytes.*side = median_of(ends);
  }
}

std::string trims_text(const TrimReport& report) {
  const auto bytes = [](double value) { return output::bytes_text(static_cast<std::uint64_t>(value)); };
  const auto number = [](double value) { return output::with_commas(static_cast<std::uint64_t>(value)); };
  const auto time = [](double value) { return output::time_text(value); };
  output::Table table({"without -> with", "time", "CPU", "faults", "peak", "mean", "before tear-down"});
  std::string missing;
  for (const TrimRow& row : report.rows) {
    table.add({text::to_line(row.name), change_text(row.wall_ns, time), change_text(row.cpu_ns, time),
               change_text(row.minor_faults, number), change_text(row.peak_bytes, bytes),
               change_text(row.mean_bytes, bytes), change_text(row.end_bytes, bytes)});
    if (row.missing != 0)
      missing += text::to_line(row.name) + ": has no counterpart for " + output::counted(row.missing, "call") + "\n";
  }
  return report.file + ": " + output::counted(report.calls, "call") +
         " of malloc_trim added (--trim-at=" + report.trim_at + ")\n" + table.text() + missing;
}

}  // namespace cmt::replay
