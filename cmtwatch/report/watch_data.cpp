// A watch as rows of CSV, and as a document of JSON.

#include <utility>

#include "cmtwatch/report/watch_report.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/json.h"

namespace cmt::watch {
namespace {

using output::DescribedAs;

/// Which figures the options add to those that each sample has.
struct ShownFigures {
  bool pauses = true;
  bool traced = true;
  bool by_process = true;
  std::string bytes_title = "bytes";  ///< the column in CSV
};

ShownFigures figures_of(const WatchOptions& options) {
  return {.pauses = options.pause,
          .traced = !options.trace.empty(),
          .by_process = options.verbose,
          .bytes_title = std::string(name_of(options.metric)) + "_bytes"};
}

/// Live bytes beside the bytes that were measured.
struct ShownLive {
  std::optional<LiveTotals> live;
  std::optional<std::uint64_t> bytes;
};

template <class Visitor>
void describe_totals(Visitor& field, const std::optional<LiveTotals>& live) {
  field("live_bytes", live ? std::optional(live->bytes) : std::nullopt, "asked for and not freed; null: not known");
  field("live_blocks", live ? std::optional(live->blocks) : std::nullopt, "the blocks of live_bytes");
}

template <class Visitor, DescribedAs<ShownLive> L>
void describe(Visitor& field, L& shown) {
  const auto& [live, bytes] = shown;
  describe_totals(field, live);
  field("beyond_live_bytes",
        live && bytes ? std::optional(static_cast<std::int64_t>(*bytes - live->bytes)) : std::nullopt,
        "bytes less live_bytes; negative where blocks were never touched");
}

struct ShownProcess {
  ProcessReading process{};
  bool traced = true;
};

template <class Visitor, DescribedAs<ShownProcess> P>
void describe(Visitor& field, P& shown) {
  const ProcessReading& process = shown.process;
  field("pid", process.pid, "the process");
  field("parent_pid", process.parent, "its parent when it was first seen");
  field("name", process.name, "the kernel's name for it");
  field("bytes", process.bytes, "of the metric; null: it could not be read");
  if (!shown.traced) return;
  const ShownLive live{process.live, process.bytes};
  describe(field, live);
}

struct ShownSample {
  Sample sample{};
  ShownFigures figures{};
};

template <class Visitor, DescribedAs<ShownSample> S>
void describe(Visitor& field, S& shown) {
  const auto& [sample, figures] = shown;
  field("begin_ns", sample.begin_ns, "since the watch began");
  field("end_ns", sample.end_ns, "the figures are of some moment between begin_ns and end_ns");
  field("bytes", sample.readable_bytes(), "of the metric, over all processes; null: none could be read");
  field("processes", sample.processes, "that were read");
  field("processes_not_readable", sample.refused, "that are missing in bytes");
  if (figures.pauses) {
    field("paused_ns", sample.paused_ns, "for so long the processes were stopped");
    field("processes_not_paused", sample.not_paused, "that could not be stopped, and were measured as they ran");
  }
  if (figures.traced) {
    const ShownLive live{sample.live, sample.readable_bytes()};
    describe(field, live);
    field("processes_not_traced", sample.untraced, "whose live bytes are not known");
  }
  if (!figures.by_process) return;
  std::vector<ShownProcess> processes;
  for (const ProcessReading& process : sample.by_process) processes.push_back({process, figures.traced});
  field("by_process", processes, "with -v: each process");
}

ShownSample shown(const Sample& sample, const ShownFigures& figures) {
  ShownSample shown{sample, figures};
  shown.figures.by_process = figures.by_process && !sample.by_process.empty();
  return shown;
}

/// A sample as a row of CSV, whose titles differ from the keys of JSON.
struct SampleCsvRow {
  const Sample& sample;
  const ShownFigures& figures;
};

template <class Visitor, DescribedAs<SampleCsvRow> R>
void describe(Visitor& field, R& row) {
  const auto& [sample, figures] = row;
  field("begin_ns", sample.begin_ns, "");
  field("end_ns", sample.end_ns, "");
  field(figures.bytes_title, sample.readable_bytes(), "");
  field("processes", sample.processes, "");
  field("not_readable", sample.refused, "");
  if (figures.pauses) {
    field("paused_ns", sample.paused_ns, "");
    field("not_paused", sample.not_paused, "");
  }
  if (!figures.traced) return;
  describe_totals(field, sample.live);
  field("not_traced", sample.untraced, "");
}

/// One process of a sample as a row of CSV.
struct ProcessCsvRow {
  const Sample& sample;
  const ProcessReading& process;
  const ShownFigures& figures;
};

template <class Visitor, DescribedAs<ProcessCsvRow> R>
void describe(Visitor& field, R& row) {
  const auto& [sample, process, figures] = row;
  field("begin_ns", sample.begin_ns, "");
  field("end_ns", sample.end_ns, "");
  field("pid", process.pid, "");
  field("parent_pid", process.parent, "");
  field("name", process.name, "");
  field(figures.bytes_title, process.bytes, "");
  if (figures.traced) describe_totals(field, process.live);
}

/// A row for each sample, or with names a row for each process.
class CsvReport : public WatchReport {
 public:
  CsvReport(const WatchOptions& options, Destination& destination)
      : figures_(figures_of(options)), destination_(destination) {
    const Sample sample;
    const ProcessReading process;
    destination_.write(figures_.by_process ? output::csv_titles(ProcessCsvRow{sample, process, figures_})
                                           : output::csv_titles(SampleCsvRow{sample, figures_}));
  }

  void sample(const Sample& sample) override {
    if (!figures_.by_process) return destination_.write(output::csv_row(SampleCsvRow{sample, figures_}));
    std::string rows;
    for (const ProcessReading& process : sample.by_process)
      rows += output::csv_row(ProcessCsvRow{sample, process, figures_});
    destination_.write(rows);
  }

  void end(const WatchResult&, const std::optional<command::Ended>&) override {}

 private:
  ShownFigures figures_;
  Destination& destination_;
};

/// Written at the end: samples are kept until then.
class JsonReport : public WatchReport {
 public:
  JsonReport(const WatchOptions& options, Destination& destination) : options_(options), destination_(destination) {}
  void sample(const Sample& sample) override { samples_.push_back(sample); }
  void end(const WatchResult& result, const std::optional<command::Ended>& ended) override {
    destination_.write(watch_json(options_, samples_, result, ended));
  }

 private:
  const WatchOptions& options_;
  Destination& destination_;
  std::vector<Sample> samples_;
};

/// How the command ended.
struct ShownEnd {
  command::Ended ended{};
};

template <class Visitor, DescribedAs<ShownEnd> E>
void describe(Visitor& field, E& shown) {
  const auto& [status, signal, resident_bytes_peak] = shown.ended;
  field("status", signal == 0 ? std::optional(status) : std::nullopt, "of its exit");
  field("signal", signal == 0 ? std::nullopt : std::optional(signal), "that ended it");
  field("resident_bytes_peak_of_one_process", resident_bytes_peak, "the kernel's, of the largest process");
}

}  // namespace

std::unique_ptr<WatchReport> make_watch_report(const WatchOptions& options, Destination& destination) {
  switch (options.form) {
    case WatchOptions::Form::json:
      return std::make_unique<JsonReport>(options, destination);
    case WatchOptions::Form::csv:
      return std::make_unique<CsvReport>(options, destination);
    case WatchOptions::Form::text:
      break;
  }
  return make_watch_text(options, destination);
}

std::string watch_json(const WatchOptions& options, const std::vector<Sample>& samples, const WatchResult& result,
                       const std::optional<command::Ended>& ended) {
  const ShownFigures figures = figures_of(options);
  output::JsonWriter json;
  output::JsonFields field(json);
  json.begin_object();
  json.field("schema", "cmt.watch/1");
  if (options.command.empty()) field("pid", options.pid, "the process that is watched");
  if (!options.command.empty()) field("command", options.command, "the words of the command");
  field("metric", name_of(options.metric), "what bytes are: pss, rss, uss, anon, swap or vm");
  field("recursive", options.recursive, "whether descendants are watched too");
  field("interval_ns", options.pace.interval_ns, "between samples");
  field("elapsed_ns", result.elapsed_ns, "from the first sample to the end of the watch");
  describe(field, static_cast<const SamplingCost&>(result));
  if (options.pause) describe(field, result.pauses);
  if (ended) field("ended", ShownEnd{*ended}, "how the command ended");
  field("peak", result.peak ? std::optional(shown(*result.peak, figures)) : std::nullopt, "the sample with most bytes");
  if (result.traced) field("traced", *result.traced, "the traces of --trace");
  json.begin_array("samples");
  for (const Sample& sample : samples) field.element(shown(sample, figures));
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace cmt::watch
