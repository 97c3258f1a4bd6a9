// cmtwatch compare: puts several runs into one table and one picture.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmtwatch/commands/subcommands.h"
#include "cmtwatch/recording/memory_series.h"
#include "cmtwatch/report/report_output.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/picture/picture.h"

namespace cmt::watch {

namespace {

/// Splits "name:file". A word that names an existing file is not split.
MemorySeries read_named(const std::string& word) {
  const auto colon = word.find(':');
  if (colon == word.npos || std::filesystem::exists(word)) return read_series(word);
  MemorySeries series = read_series(word.substr(colon + 1));
  series.name = word.substr(0, colon);
  return series;
}

struct Run {
  MemorySeries series{};
  std::optional<std::uint64_t> peak_bytes{};
  std::optional<std::int64_t> peak_ns{};
  std::optional<std::int64_t> duration_ns{};
  std::optional<double> ratio{};  ///< of its peak to the first run's
};

std::vector<Run> read_runs(const std::vector<std::string>& words) {
  std::vector<Run> runs;
  for (const std::string& word : words) {
    Run& run = runs.emplace_back(Run{read_named(word)});
    const MemorySeries& series = run.series;
    if (series.bytes.empty()) continue;
    run.peak_bytes = series.bytes[series.peak_index()];
    run.peak_ns = series.time_ns[series.peak_index()];
    run.duration_ns = series.time_ns.back() - series.time_ns.front();
    if (const auto first = runs.front().peak_bytes; first.value_or(0) != 0)
      run.ratio = static_cast<double>(*run.peak_bytes) / static_cast<double>(*first);
  }
  return runs;
}

std::string seconds(const std::optional<std::int64_t>& ns) { return ns ? output::seconds_text(*ns) : ""; }

std::optional<std::string> metric_of(const Run& run) {
  return run.series.metric.empty() ? std::nullopt : std::optional(run.series.metric);
}

std::string table_of(const std::vector<Run>& runs, bool bytes) {
  output::Table table({"run", "measured", "peak", "ratio", "at", "duration", "samples"}, {0, 1});
  for (const Run& run : runs) {
    table.add({run.series.name, metric_of(run).value_or("?"),
               (run.series.peak_missed ? "at least " : "") +
                   (run.peak_bytes ? amount(*run.peak_bytes, bytes) : std::string("no sample")),
               run.ratio ? output::fixed(*run.ratio, 2) : "", seconds(run.peak_ns), seconds(run.duration_ns),
               output::with_commas(run.series.bytes.size())});
  }
  return table.text();
}

template <class Visitor, output::DescribedAs<Run> R>
void describe(Visitor& field, R& run) {
  field("name", run.series.name, "NAME, else FILE");
  field("metric", metric_of(run), "null: the file has none");
  field("peak_bytes", run.peak_bytes, "null: there is no sample");
  field("peak_missed", run.series.peak_missed, "the kernel saw more between samples than they did");
  field("peak_ns", run.peak_ns, "since the run began");
  field("peak_ratio_to_first", run.ratio, "of peak_bytes to those of the first run");
  field("duration_ns", run.duration_ns, "from the first sample to the last");
  field("time_ns", run.series.time_ns, "of each sample, since the run began");
  field("bytes", run.series.bytes, "of each sample");
}

std::string json_of(const std::vector<Run>& runs) {
  output::JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.compare/1");
  output::write_field(json, "runs", runs);
  json.end_object();
  return json.take();
}

picture::Picture picture_of(const std::vector<Run>& runs) {
  picture::Panel panel = bytes_over_time("memory over time", "memory");
  for (const Run& run : runs) {
    const auto metric = metric_of(run);
    picture::Series series{metric ? run.series.name + " (" + *metric + ")" : run.series.name, {}, {}};
    for (std::size_t i = 0; i < run.series.bytes.size(); ++i) series.add(run.series.time_ns[i], run.series.bytes[i]);
    panel.series.push_back(std::move(series));
  }
  return {"runs compared", std::to_string(runs.size()) + (runs.size() == 1 ? " run" : " runs"), {panel}};
}

int compare(const command::CommandLine& line) {
  if (line.files().empty()) throw command::UsageError("expected runs to compare");
  const std::string plot = parse_plot(line);
  const std::vector<Run> runs = read_runs(line.files());
  if (line.has("plot")) {
    picture::PictureFile file(plot);
    file.write(picture_of(runs), json_of(runs));
  }
  command::print(line.has("json") ? json_of(runs) : table_of(runs, line.has("bytes")));
  return 0;
}

}  // namespace

Subcommand compare_subcommand() {
  return {.name = "compare",
          .summary = "compare several runs in one table and one picture",
          .help = R"(Usage: cmtwatch compare [OPTION]... [NAME:]FILE...

Compares the memory of several runs in one table. FILE is a recording of
cmtwatch record, or JSON of cmtwatch run, get or export, or of LL-Tracket. NAME
is the run's name in the table.

  --plot=FILE        draw all runs in one picture; FILE ends in .svg, .html,
                     .png or .pdf
  --bytes            print numbers in bytes
  --json             print JSON
  --color=auto|always|never
                     print headings in bold. auto, the default: on a terminal,
                     unless NO_COLOR is set
)",
          .run = compare};
}

}  // namespace cmt::watch
