#include "cmtwatch/record_plot.h"

#include <algorithm>

#include "output/json.h"
#include "output/numbers.h"

namespace cmt::watch {
namespace {

using output::Panel;
using output::Series;
using output::Unit;

Panel empty_panel(const char* title) {
  return {.title = title, .x = {.title = "time", .unit = Unit::ns}, .y = {.title = "memory", .unit = Unit::bytes}};
}

Series resident_line(const KindSeries& series) {
  Series line{"resident set", {}, {}};
  for (std::size_t i = 0; i < series.time_ns.size(); ++i) {
    if (!series.resident_bytes[i]) continue;
    line.x.push_back(static_cast<double>(series.time_ns[i]));
    line.y.push_back(static_cast<double>(*series.resident_bytes[i]));
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

/// Kinds that there is nothing of are left out.
Panel kinds_panel(const KindSeries& series) {
  Panel panel = empty_panel("by kind of memory");
  panel.series.push_back(resident_line(series));
  for (std::size_t kind = 0; kind < memory_kinds; ++kind) {
    const bool any = std::any_of(series.by_kind.begin(), series.by_kind.end(),
                                 [kind](const BytesByKind& moment) { return moment[kind] != 0; });
    if (!any) continue;
    panel.series.push_back(band(series, std::string(name_of(static_cast<MemoryKind>(kind))),
                                [&](std::size_t i) { return series.by_kind[i][kind]; }));
  }
  return panel;
}

Panel processes_panel(const KindSeries& series) {
  Panel panel = empty_panel("by process");
  for (const KindSeries::Process& process : series.processes) {
    const std::string name = process.pid == 0 ? process.name : process.name + " " + std::to_string(process.pid);
    panel.series.push_back(band(series, name, [&](std::size_t i) { return process.resident_bytes[i]; }));
  }
  return panel;
}

}  // namespace

output::Picture picture_of(const KindSeries& series, const std::string& title) {
  std::string subtitle = output::with_commas(series.time_ns.size()) + " moments";
  const auto peak = std::max_element(series.resident_bytes.begin(), series.resident_bytes.end());
  if (peak != series.resident_bytes.end() && *peak)
    subtitle += ", most resident " + output::bytes_text(**peak) + " at " +
                output::time_text(static_cast<double>(
                    series.time_ns[static_cast<std::size_t>(peak - series.resident_bytes.begin())]));
  output::Picture picture{title, subtitle, {kinds_panel(series)}};
  if (!series.processes.empty()) picture.panels.push_back(processes_panel(series));
  return picture;
}

std::string to_json(const KindSeries& series, const std::string& title) {
  output::JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.kinds/1");
  json.field("recording", title);
  json.begin_array("time_ns");
  for (const std::int64_t time : series.time_ns) json.value(time);
  json.end_array();
  json.begin_array("resident_bytes");
  for (const auto& bytes : series.resident_bytes) json.value(bytes);
  json.end_array();
  json.begin_array("kinds");
  for (std::size_t kind = 0; kind < memory_kinds; ++kind) {
    json.begin_object();
    json.field("name", name_of(static_cast<MemoryKind>(kind)));
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
    json.begin_array("resident_bytes");
    for (const std::uint64_t bytes : process.resident_bytes) json.value(bytes);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace cmt::watch
