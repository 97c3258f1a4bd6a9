// Shows the progress of a recording, and draws its picture from the series of memory_kinds.h.
#include "cmtwatch/report/recording_report.h"

#include <unistd.h>
#include <algorithm>
#include <system_error>
#include <utility>

#include "toolkit/command/command_line.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"

namespace cmt::watch {
namespace {

using terminal::Beside;

std::string sum_text(const MemorySum& memory) {
  return output::bytes_text(memory.bytes()) + " " + std::string(memory.metric());
}

using picture::Panel;
using picture::Series;

std::string with_metric(const std::string& name, std::string_view metric) {
  return name + " (" + std::string(metric) + ")";
}

Panel empty_panel(const char* title, std::string_view metric) {
  return bytes_over_time(title, with_metric("memory", metric));
}

/// Adds a figure to a series, moment by moment. When processes end it falls a nanosecond after the moment, and not
/// slowly until the next one. The end of all processes adds no 0.
template <class Figure, class BytesOf>
Series made(const KindSeries& series, std::string name, Series::Form form, const Course<Figure>& course,
            BytesOf bytes_of) {
  Series made{std::move(name), {}, {}, form};
  const auto& [sums, sums_after] = series.sums;
  for (std::size_t i = 0; i < series.time_ns.size(); ++i) {
    if (sums[i].any()) made.add(series.time_ns[i], bytes_of(course.at[i]));
    if (sums_after[i].any() && sums_after[i].bytes() != sums[i].bytes())
      made.add(series.time_ns[i] + 1, bytes_of(course.after[i]));
  }
  return made;
}

Series band(const KindSeries& series, std::string name, const Course<std::uint64_t>& bytes) {
  return made(series, std::move(name), Series::Form::band, bytes, [](std::uint64_t figure) { return figure; });
}

/// The name contains the metric of a band if it is not the axis's.
std::string band_name(const std::string& name, std::string_view metric, std::string_view axis_metric) {
  return metric == axis_metric ? name : with_metric(name, metric);
}

/// Kinds without memory are left out. Swapped memory is in none of the sums.
Panel kinds_panel(const KindSeries& series, std::string_view metric) {
  Panel panel = empty_panel("by kind of memory", metric);
  panel.series.push_back(made(series, with_metric("in all", metric), Series::Form::line, series.sums,
                              [](const MemorySum& sum) { return sum.bytes(); }));
  for (std::size_t i = 0; i < memory_kinds; ++i) {
    const bool any = std::any_of(series.by_kind.at.begin(), series.by_kind.at.end(),
                                 [i](const BytesByKind& moment) { return moment[i] != 0; });
    if (!any) continue;
    const auto kind = static_cast<MemoryKind>(i);
    const std::string name(name_of(kind));
    panel.series.push_back(
        made(series, kind == MemoryKind::swapped ? name : band_name(name, name_of(metric_of(kind)), metric),
             Series::Form::band, series.by_kind, [i](const BytesByKind& moment) { return moment[i]; }));
  }
  return panel;
}

Panel processes_panel(const KindSeries& series, std::string_view metric) {
  Panel panel = empty_panel("by process", metric);
  for (const KindSeries::Band& process : series.processes) {
    const std::string name = process.pid == 0 ? process.name : process.name + " " + std::to_string(process.pid);
    panel.series.push_back(band(series, band_name(name, process.all.metric(), metric), process.bytes));
  }
  return panel;
}

Panel parts_panel(const PartSeries& parts) {
  Panel panel = bytes_over_time("by part", "resident memory");
  for (const PartSeries::Band& part : parts.bands) {
    Series& series = panel.series.emplace_back(Series{part.name, {}, {}, Series::Form::step_band});
    for (std::size_t i = 0; i < parts.time_ns.size(); ++i) series.add(parts.time_ns[i], part.bytes[i]);
  }
  return panel;
}

/// The name contains the process if there are several.
Panel mappings_panel(const KindSeries& series) {
  Panel panel = empty_panel("by mapping", "pss");
  for (const KindSeries::Band& mapping : series.mappings) {
    const bool is_file = mapping.name.starts_with("/");
    std::string name = is_file ? mapping.name.substr(mapping.name.rfind('/') + 1) : mapping.name;
    if (mapping.pid != 0 && !series.processes.empty()) name += " of " + std::to_string(mapping.pid);
    panel.series.push_back(band(series, std::move(name), mapping.bytes));
  }
  return panel;
}

}  // namespace

RecordView::RecordView(Beside beside)
    : beside_(beside),
      columns_(beside == Beside::nobody ? STDOUT_FILENO : STDERR_FILENO, beside,
               [this] { return LiveColumns::Text{head()}; }),
      prints_(beside == Beside::nobody && !columns_.active()) {}

void RecordView::show(std::int64_t tick, std::int64_t time_ns, std::size_t processes, MemorySum memory) {
  last_ = {tick, time_ns, processes, memory};
  if (moments_++ == 0 || memory.bytes() > peak_.memory.bytes()) peak_ = last_;
  if (prints_) print(moment_text(last_) + "\n");
  if (columns_.active()) columns_.add(memory.bytes());
}

std::string RecordView::moment_text(const Moment& moment) {
  return output::seconds_text(moment.time_ns) + "  " + sum_text(moment.memory) + ", " +
         output::counted(moment.processes, "process");
}

std::string RecordView::peak_text() const {
  return "peak " + sum_text(peak_.memory) + " at " + output::seconds_text(peak_.time_ns);
}

std::string RecordView::head() const {
  return moment_text(last_) + ", " + output::counted(static_cast<std::uint64_t>(last_.tick), "moment") + ", " +
         peak_text();
}

bool RecordView::end(const SamplingCost& cost) {
  columns_.clear();
  if (moments_ == 0 || (beside_ == Beside::command && !columns_.active())) return false;
  std::string line = peak_text() + "; " + output::counted(moments_, "moment") + cost.left_out_text();
  const bool is_one_look = moments_ == 1 && cost.missed + cost.skipped == 0;  // which is all of the elapsed time
  if (!is_one_look) line += "; recording took " + output::fixed(cost.cpu_share() * 100, 1) + " % of a processor";
  beside_ == Beside::nobody ? print(line + "\n") : command::complain("cmtwatch record", line);
  return true;
}

/// A closed pipe does not end the recording.
void RecordView::print(const std::string& line) {
  if (!prints_ && !columns_.active()) return;
  try {
    command::print(line);
  } catch (const std::system_error& error) {
    prints_ = false;
    command::complain("cmtwatch record", error.what() + std::string("; the recording goes on"));
  }
}

picture::Picture recording_picture(const KindSeries& series, const std::string& title) {
  std::string subtitle = output::counted(series.time_ns.size(), "moment");
  const auto peak = std::max_element(series.sums.at.begin(), series.sums.at.end(),
                                     [](const MemorySum& a, const MemorySum& b) { return a.bytes() < b.bytes(); });
  if (peak != series.sums.at.end() && peak->any())
    subtitle +=
        ", most " + output::bytes_text(peak->bytes()) + " " + std::string(peak->metric()) + " at " +
        output::time_text(static_cast<double>(series.time_ns[static_cast<std::size_t>(peak - series.sums.at.begin())]));
  const std::string_view metric = series.all.metric();
  picture::Picture picture{title, subtitle, {kinds_panel(series, metric)}};
  if (!series.processes.empty()) picture.panels.push_back(processes_panel(series, metric));
  if (series.parts.time_ns.size() > 1) picture.panels.push_back(parts_panel(series.parts));
  if (!series.mappings.empty()) picture.panels.push_back(mappings_panel(series));
  return picture;
}

std::string recording_json(const KindSeries& series, const std::string& title) {
  std::vector<std::optional<std::uint64_t>> sums;
  for (const MemorySum& sum : series.sums.at) sums.push_back(sum.any() ? std::optional(sum.bytes()) : std::nullopt);
  output::JsonWriter json;
  output::JsonFields field(json);
  json.begin_object();
  json.field("schema", "cmt.kinds/1");
  field("recording", title, "the file");
  field("metric", series.all.metric(), "over all moments: pss, rss, or pss or rss");
  field("time_ns", series.time_ns, "of each moment, since the recording began");
  field("bytes", sums, "of all processes at each moment; null: none could be read");
  json.begin_array("kinds");
  for (std::size_t kind = 0; kind < memory_kinds; ++kind) {
    std::vector<std::uint64_t> bytes;
    for (const BytesByKind& moment : series.by_kind.at) bytes.push_back(moment[kind]);
    json.begin_object();
    field("name", name_of(static_cast<MemoryKind>(kind)), "the kind of memory");
    field("metric", name_of(metric_of(static_cast<MemoryKind>(kind))), "what bytes are: pss, rss or swap");
    field("bytes", bytes, "at each moment; all kinds but those of swap add up to the sum");
    json.end_object();
  }
  json.end_array();
  json.begin_array("processes");
  for (const auto& [pid, name, bytes, all] : series.processes) {
    json.begin_object();
    field("pid", pid == 0 ? std::nullopt : std::optional(pid), "null: all but the largest processes");
    field("name", name, "the kernel's name for it");
    field("metric", all.metric(), "what bytes are: pss, rss, or pss or rss");
    field("bytes", bytes.at, "at each moment; 0 where it was not there");
    json.end_object();
  }
  json.end_array();
  json.begin_array("mappings");
  for (const auto& [pid, name, bytes, all] : series.mappings) {
    json.begin_object();
    field("pid", pid == 0 ? std::nullopt : std::optional(pid), "null: all but the largest mappings");
    field("name", name, "of the mappings, or the first address of one without");
    field("bytes", bytes.at, "proportional ones at each moment; 0 where they were not there");
    json.end_object();
  }
  json.end_array();
  field("parts_time_ns", series.parts.time_ns, "of each look at the parts, since the recording began");
  json.begin_array("parts");
  for (const auto& [part, name, bytes] : series.parts.bands) {
    json.begin_object();
    field("part", part, "a word for scripts, as in cmt.explain/1, or others");
    field("name", name, "the same for people");
    field("bytes", bytes, "resident at each look, of all processes that were looked at");
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace cmt::watch
