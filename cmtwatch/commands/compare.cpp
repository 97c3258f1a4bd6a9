// cmtwatch compare: puts several runs into one table and one picture.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmtwatch/commands/subcommands.h"
#include "cmtwatch/recording/memory_series.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/picture/picture_file.h"

namespace cmt::watch {

namespace {

/// Reads "name:file". A word that is the name of a file is not split.
MemorySeries read_named(const std::string& word) {
  const auto colon = word.find(':');
  if (colon == word.npos || std::filesystem::exists(word)) return read_series(word);
  MemorySeries series = read_series(word.substr(colon + 1));
  series.name = word.substr(0, colon);
  return series;
}

struct RunFigures {
  std::optional<std::uint64_t> peak_bytes;
  std::optional<std::int64_t> peak_ns;
  std::optional<std::int64_t> duration_ns;
  std::optional<double> ratio;  ///< of its peak to the first run's
};

RunFigures figures_of(const MemorySeries& series, const MemorySeries& first) {
  if (series.bytes.empty()) return {};
  RunFigures figures{.peak_bytes = series.bytes[series.peak_index()],
                     .peak_ns = series.time_ns[series.peak_index()],
                     .duration_ns = series.time_ns.back() - series.time_ns.front(),
                     .ratio = std::nullopt};
  if (!first.bytes.empty() && first.bytes[first.peak_index()] != 0)
    figures.ratio = static_cast<double>(*figures.peak_bytes) / static_cast<double>(first.bytes[first.peak_index()]);
  return figures;
}

std::string seconds(const std::optional<std::int64_t>& ns) { return ns ? output::seconds_text(*ns) : ""; }

std::string table_of(const std::vector<MemorySeries>& runs, bool bytes) {
  output::Table table({"run", "measured", "peak", "ratio", "at", "duration", "samples"}, {0, 1});
  for (const MemorySeries& run : runs) {
    const RunFigures figures = figures_of(run, runs.front());
    const auto peak = figures.peak_bytes;
    table.add({run.name, run.metric.empty() ? "?" : run.metric,
               peak ? (bytes ? std::to_string(*peak) : output::bytes_text(*peak)) : "no sample",
               figures.ratio ? output::fixed(*figures.ratio, 2) : "", seconds(figures.peak_ns),
               seconds(figures.duration_ns), output::with_commas(run.bytes.size())});
  }
  return table.text();
}

struct ShownRun {
  MemorySeries series{};
  RunFigures figures{};
};

template <class Visitor, output::DescribedAs<ShownRun> R>
void describe(Visitor& field, R& run) {
  const auto& [series, figures] = run;
  field("name", series.name, "NAME, else FILE");
  field("metric", series.metric.empty() ? std::nullopt : std::optional(series.metric), "null: the file has none");
  field("peak_bytes", figures.peak_bytes, "null: there is no sample");
  field("peak_ns", figures.peak_ns, "since the run began");
  field("peak_ratio_to_first", figures.ratio, "of peak_bytes to those of the first run");
  field("duration_ns", figures.duration_ns, "from the first sample to the last");
  field("time_ns", series.time_ns, "of each sample, since the run began");
  field("bytes", series.bytes, "of each sample");
}

std::string json_of(const std::vector<MemorySeries>& runs) {
  output::JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.compare/1");
  json.begin_array("runs");
  for (const MemorySeries& run : runs) output::write_object(json, ShownRun{run, figures_of(run, runs.front())});
  json.end_array();
  json.end_object();
  return json.take();
}

output::Picture picture_of(const std::vector<MemorySeries>& runs) {
  output::Panel panel{.title = "memory over time",
                      .x = {.title = "time", .unit = output::Unit::ns},
                      .y = {.title = "memory", .unit = output::Unit::bytes}};
  for (const MemorySeries& run : runs) {
    output::Series series{run.metric.empty() ? run.name : run.name + " (" + run.metric + ")", {}, {}};
    for (const std::int64_t time : run.time_ns) series.x.push_back(static_cast<double>(time));
    for (const std::uint64_t bytes : run.bytes) series.y.push_back(static_cast<double>(bytes));
    panel.series.push_back(std::move(series));
  }
  return {"runs compared", std::to_string(runs.size()) + (runs.size() == 1 ? " run" : " runs"), {panel}};
}

int compare(const command::CommandLine& line) {
  if (line.files().empty()) throw command::UsageError("expected runs to compare");
  const std::string plot = parse_plot(line);
  std::vector<MemorySeries> runs;
  for (const std::string& word : line.files()) runs.push_back(read_named(word));
  if (line.has("plot")) {
    output::PictureFile file(plot);
    file.write(picture_of(runs), json_of(runs));
  }
  command::print(line.has("json") ? json_of(runs) : table_of(runs, line.has("bytes")));
  return 0;
}

}  // namespace

Subcommand compare_subcommand() {
  return {.name = "compare",
          .summary = "put several runs into one table and one picture",
          .help = R"(Usage: cmtwatch compare [OPTION]... [NAME:]FILE...

Puts several runs beside each other: recordings of cmtwatch record, JSON of
cmtwatch run, get and export, JSON of LL-Tracket.

  --plot=FILE        a picture, as .svg, .html, .png or .pdf by FILE's ending:
                     the runs over each other
  --bytes            numbers in bytes
  --json             as JSON
)",
          .run = compare};
}

}  // namespace cmt::watch
