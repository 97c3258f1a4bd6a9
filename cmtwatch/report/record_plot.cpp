#include "cmtwatch/report/record_plot.h"

#include <algorithm>

#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"

namespace cmt::watch {
namespace {

using output::Panel;
using output::Series;
using output::Unit;

/// What the bytes of some moments are of.
std::string_view metric_of(const std::vector<Summed>& moments) {
  Summed all;
  for (const Summed& moment : moments) all.add(moment);
  return all.metric();
}

std::string with_metric(const std::string& name, std::string_view metric) {
  return name + " (" + std::string(metric) + ")";
}

Panel empty_panel(const char* title, std::string_view metric) {
  return {.title = title,
          .x = {.title = "time", .unit = Unit::ns},
          .y = {.title = with_metric("memory", metric), .unit = Unit::bytes}};
}

Series sum_line(const KindSeries& series, std::string_view metric) {
  Series line{with_metric("in all", metric), {}, {}};
  for (std::size_t i = 0; i < series.time_ns.size(); ++i) {
    if (!series.sums[i].any()) continue;
    line.x.push_back(static_cast<double>(series.time_ns[i]));
    line.y.push_back(static_cast<double>(series.sums[i].bytes()));
  }
  return line;
}

template <class Bytes>
Series band(const KindSeries& series, std::string name, Bytes bytes) {
  Series made{std::move(name), {}, {}, Series::Form::band};
  for (std::size_t i = 0; i < series.time_ns.size(); ++i) {
    made.x.push_back(static_cast<double>(series.time_ns[i]));
    made.y.push_back(static_cast<double>(bytes(i)));
  }
  return made;
}

/// A band says what it is of where that is not what the axis says.
std::string band_name(const std::string& name, std::string_view metric, std::string_view axis_metric) {
  return metric == axis_metric ? name : with_metric(name, metric);
}

/// Kinds that there is nothing of are left out. What is swapped out is in none of the sums.
Panel kinds_panel(const KindSeries& series, std::string_view metric) {
  Panel panel = empty_panel("by kind of memory", metric);
  panel.series.push_back(sum_line(series, metric));
  for (std::size_t i = 0; i < memory_kinds; ++i) {
    const bool any = std::any_of(series.by_kind.begin(), series.by_kind.end(),
                                 [i](const BytesByKind& moment) { return moment[i] != 0; });
    if (!any) continue;
    const auto kind = static_cast<MemoryKind>(i);
    const std::string name(name_of(kind));
    panel.series.push_back(band(series,
                                kind == MemoryKind::swapped ? name : band_name(name, name_of(metric_of(kind)), metric),
                                [&](std::size_t moment) { return series.by_kind[moment][i]; }));
  }
  return panel;
}

Panel processes_panel(const KindSeries& series, std::string_view metric) {
  Panel panel = empty_panel("by process", metric);
  for (const KindSeries::Process& process : series.processes) {
    const std::string name = process.pid == 0 ? process.name : process.name + " " + std::to_string(process.pid);
    panel.series.push_back(
        band(series, band_name(name, process.all.metric(), metric), [&](std::size_t i) { return process.bytes[i]; }));
  }
  return panel;
}

}  // namespace

output::Picture picture_of(const KindSeries& series, const std::string& title) {
  std::string subtitle = output::with_commas(series.time_ns.size()) + " moments";
  const auto peak = std::max_element(series.sums.begin(), series.sums.end(),
                                     [](const Summed& a, const Summed& b) { return a.bytes() < b.bytes(); });
  if (peak != series.sums.end() && peak->any())
    subtitle +=
        ", most " + output::bytes_text(peak->bytes()) + " " + std::string(peak->metric()) + " at " +
        output::time_text(static_cast<double>(series.time_ns[static_cast<std::size_t>(peak - series.sums.begin())]));
  const std::string_view metric = metric_of(series.sums);
  output::Picture picture{title, subtitle, {kinds_panel(series, metric)}};
  if (!series.processes.empty()) picture.panels.push_back(processes_panel(series, metric));
  return picture;
}

std::string to_json(const KindSeries& series, const std::string& title) {
  output::JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.kinds/1");
  json.field("recording", title);
  json.field("metric", metric_of(series.sums));
  json.begin_array("time_ns");
  for (const std::int64_t time : series.time_ns) json.value(time);
  json.end_array();
  json.begin_array("bytes");
  for (const Summed& sum : series.sums) json.value(sum.any() ? std::optional(sum.bytes()) : std::nullopt);
  json.end_array();
  json.begin_array("kinds");
  for (std::size_t kind = 0; kind < memory_kinds; ++kind) {
    json.begin_object();
    json.field("name", name_of(static_cast<MemoryKind>(kind)));
    json.field("metric", name_of(metric_of(static_cast<MemoryKind>(kind))));
    json.begin_array("bytes");
    for (const BytesByKind& moment : series.by_kind) json.value(moment[kind]);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.begin_array("processes");
  for (const KindSeries::Process& process : series.processes) {
    json.begin_object();
    json.field("pid", process.pid == 0 ? std::nullopt : std::optional(process.pid));
    json.field("name", process.name);
    json.field("metric", process.all.metric());
    json.begin_array("bytes");
    for (const std::uint64_t bytes : process.bytes) json.value(bytes);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace cmt::watch
