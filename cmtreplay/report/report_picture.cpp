// Draws the report as a picture: memory along the trace, how long calls took, and the tables.
#include <algorithm>

#include "cmtreplay/report/report.h"
#include "cmtreplay/report/warnings.h"
#include "toolkit/command/command_line.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/style.h"

namespace cmt::replay {
namespace {

using picture::Axis;
using picture::Panel;
using picture::Series;
using picture::Unit;

double position_of(const Mark& mark, std::uint64_t begin_ns, bool by_time) {
  return static_cast<double>(by_time ? mark.time_ns - begin_ns : mark.event);
}

/// Memory along the trace. The marks are the same for all allocators. An allocator has the same colour in all panels,
/// even if one before it has died. `by_time`: along recorded time, else along events.
Panel memory_panel(const Report& report, bool by_time) {
  Panel panel{.title = by_time ? "Memory over the recorded time" : "Memory along the trace",
              .x = by_time ? Axis{"recorded time", Unit::ns} : Axis{"events", Unit::count},
              .y = {"bytes", Unit::bytes}};
  const TracePlan& plan = report.trace.plan();
  for (const AllocatorResult& result : report.results.allocators) {
    Series resident{.name = result.allocator.name, .x = {}, .y = {}};
    if (result.memory) {
      resident.add(0, result.memory->start_bytes);
      for (const MarkSample& sample : result.memory->marks)
        resident.add(position_of(sample.mark, plan.begin_ns, by_time), sample.memory.resident_bytes);
    }
    panel.series.push_back(std::move(resident));
  }
  Series live{.name = "live", .x = {}, .y = {}}, touched{.name = "live and touched", .x = {}, .y = {}};
  for (const Mark& mark : plan.marks) {
    const double x = position_of(mark, plan.begin_ns, by_time);
    live.add(x, mark.live.bytes);
    touched.add(x, mark.live.bytes - mark.untouched_bytes);
  }
  panel.series.push_back(std::move(live));
  if (plan.facts.touched_min != 0) panel.series.push_back(std::move(touched));
  return panel;
}

/// How long calls took, from the median to the rarest calls. The axis is logarithmic, so that rare calls have room.
Panel latency_panel(const Report& report, latency_kind kind, const std::string& name) {
  Panel panel{.title = "How long " + name + " took",
              .x = {"share of the calls that took no longer", Unit::one_in, true},
              .y = {"time of a call", Unit::ns, true}};
  panel.x.ticks = {{1, "0 %"},       {2, "50 %"},         {10, "90 %"},         {100, "99 %"},
                   {1000, "99.9 %"}, {10'000, "99.99 %"}, {100'000, "99.999 %"}};
  for (const AllocatorResult& result : report.results.allocators) {
    Series series{.name = result.allocator.name, .x = {}, .y = {}};
    for (const auto& [one_in, ns] : result.latencies.tail(kind)) series.add(one_in, ns);
    panel.series.push_back(std::move(series));
  }
  return panel;
}

}  // namespace

picture::Picture to_picture(const Report& report, bool is_page) {
  picture::Picture picture;
  picture.title = command::input_name(report.options.file);
  picture.subtitle = title_text(report).substr(picture.title.size() + 2);
  const bool has_times = report.trace.plan().facts.recorded_ns != unknown;
  if (has_times) picture.panels.push_back(memory_panel(report, true));
  picture.panels.push_back(memory_panel(report, false));
  const auto was_timed = [](const AllocatorResult& result) { return result.latencies.samples() != 0; };
  if (std::any_of(report.results.allocators.begin(), report.results.allocators.end(), was_timed)) {
    picture.panels.push_back(latency_panel(report, latency_malloc, "malloc"));
    picture.panels.push_back(latency_panel(report, latency_free, "free"));
  }
  if (is_page) {
    for (const auto& tables : {main_tables(report), detail_tables(report)})
      for (const output::Table& table : tables) picture.tables.push_back({table.titles(), table.rows()});
    picture.table = notes_text(report);
  } else {
    const std::string text = output::without_styles(report_text(report));
    picture.table = text.substr(text.find('\n') + 1);
  }
  for (const std::string& line : warning_lines(report, false)) picture.table += line + "\n";
  return picture;
}

}  // namespace cmt::replay
