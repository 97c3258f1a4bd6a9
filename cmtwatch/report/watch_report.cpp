// Writes samples as text, CSV or JSON while they come, and the peak at the end.
#include "cmtwatch/report/watch_report.h"

#include "toolkit/output/fields.h"
#include "toolkit/output/json.h"

namespace cmt::watch {
namespace {

using output::DescribedAs;

/// Describes the live totals; with their intervals if blocks are sampled.
template <class Visitor>
void describe_live(Visitor& field, const std::optional<Estimate>& live, const TraceOptions& trace) {
  const auto whole_of = [&](const auto& number_of) {
    return live ? std::optional(analysis::whole(number_of(*live))) : std::nullopt;
  };
  field("live_bytes", whole_of([](const Estimate& one) { return one.bytes; }),
        "asked for and not freed; null: not known");
  field("live_blocks", whole_of([](const Estimate& one) { return one.blocks; }), "the blocks of live_bytes");
  if (!trace.samples()) return;
  field("live_bytes_low", whole_of([](const Estimate& one) { return interval95(one).low; }),
        "the lower end of the 95 % interval of live_bytes, which is an estimate");
  field("live_bytes_high", whole_of([](const Estimate& one) { return interval95(one).high; }), "the upper end");
  field("live_samples", live ? std::optional(live->samples) : std::nullopt, "on which the estimate rests");
}

/// Describes the live totals, and the measured bytes less the live bytes.
template <class Visitor>
void describe_beyond(Visitor& field, const std::optional<Estimate>& live, const std::optional<std::uint64_t>& bytes,
                     const TraceOptions& trace) {
  describe_live(field, live, trace);
  field("beyond_live_bytes",
        live && bytes ? std::optional(static_cast<std::int64_t>(*bytes - analysis::whole(live->bytes))) : std::nullopt,
        "bytes less live_bytes; negative where blocks were never touched");
}

struct ShownProcess {
  const ProcessReading& process;
  const TraceOptions& trace;
};

template <class Visitor, DescribedAs<ShownProcess> P>
void describe(Visitor& field, P& shown) {
  const ProcessReading& process = shown.process;
  field("pid", process.pid, "the process");
  field("parent_pid", process.parent, "its parent when it was first seen");
  field("name", process.name, "the kernel's name for it");
  field("bytes", process.bytes, "of the metric; null: it could not be read");
  if (shown.trace.wanted()) describe_beyond(field, process.live, process.bytes, shown.trace);
}

struct ShownGroup {
  const GroupReading& group;
  Metric metric;
};

template <class Visitor, DescribedAs<ShownGroup> G>
void describe(Visitor& field, G& shown) {
  const GroupReading& group = shown.group;
  describe_named(field, group);
  field("beyond_measured_bytes", is_in_use(shown.metric) ? std::optional(group.beyond_bytes()) : std::nullopt,
        "current_bytes less measured_bytes; null with swap and vm");
}

/// A sample with the figures that the options ask for.
struct ShownSample {
  const Sample& sample;
  const WatchOptions& options;
};

template <class Visitor, DescribedAs<ShownSample> S>
void describe(Visitor& field, S& shown) {
  const auto& [sample, options] = shown;
  field("begin_ns", sample.begin_ns, "since the watch began");
  field("end_ns", sample.end_ns, "the figures are of some moment between begin_ns and end_ns");
  field("wall_ns", sample.wall_ns, "begin_ns by the wall clock, since 1970");
  field("bytes", sample.readable_bytes(), "of the metric, over all processes; null: none could be read");
  field("processes", sample.processes, "that were read");
  field("processes_not_readable", sample.refused, "that are missing in bytes");
  if (options.pause) {
    field("paused_ns", sample.paused_ns, "for so long the processes were stopped");
    field("processes_not_paused", sample.not_paused, "that could not be stopped, and were measured as they ran");
  }
  if (options.trace.wanted()) {
    describe_beyond(field, sample.live, sample.readable_bytes(), options.trace);
    field("processes_not_traced", sample.untraced, "whose live bytes are not known");
  }
  std::vector<ShownGroup> groups;
  for (const GroupReading& group : sample.groups) groups.push_back({group, options.metric});
  field("groups", groups, "the control groups of these processes; empty: none, or they cannot be seen");
  if (!options.verbose || sample.by_process.empty()) return;
  std::vector<ShownProcess> processes;
  for (const ProcessReading& process : sample.by_process) processes.push_back({process, options.trace});
  field("by_process", processes, "with -v: each process");
}

/// A sample as a row of CSV, or one process of it. The titles differ from the keys of JSON.
struct CsvRow {
  const Sample& sample;
  const ProcessReading* process;  ///< null: the sample
  const WatchOptions& options;
};

template <class Visitor, DescribedAs<CsvRow> R>
void describe(Visitor& field, R& row) {
  const auto& [sample, process, options] = row;
  field("begin_ns", sample.begin_ns, "");
  field("end_ns", sample.end_ns, "");
  if (process) {
    field("pid", process->pid, "");
    field("parent_pid", process->parent, "");
    field("name", process->name, "");
  }
  field(std::string(name_of(options.metric)) + "_bytes", process ? process->bytes : sample.readable_bytes(), "");
  if (!process) {
    field("processes", sample.processes, "");
    field("not_readable", sample.refused, "");
  }
  if (!process && options.pause) {
    field("paused_ns", sample.paused_ns, "");
    field("not_paused", sample.not_paused, "");
  }
  if (options.trace.wanted()) {
    describe_live(field, process ? process->live : sample.live, options.trace);
    if (!process) field("not_traced", sample.untraced, "");
  }
  field("wall_ns", sample.wall_ns, "");
  if (process) return;
  const GroupReading* const group = sample.largest_group();
  const GroupReading none{};
  const auto add_figure = [&](std::string_view key, const auto& figure, std::string_view) {
    using Figure = std::remove_cvref_t<decltype(figure)>;
    if constexpr (std::is_integral_v<Figure>)
      field("group_" + std::string(key), group ? std::optional(figure) : std::nullopt, "");
    else
      field("group_" + std::string(key), figure, "");
  };
  describe(add_figure, group ? *group : none);
}

/// Returns one row for the sample; with -v one row for each process instead.
std::string csv_rows(const Sample& sample, const WatchOptions& options) {
  if (!options.verbose) return output::csv_row(CsvRow{sample, nullptr, options});
  std::string rows;
  for (const ProcessReading& process : sample.by_process) rows += output::csv_row(CsvRow{sample, &process, options});
  return rows;
}

std::string csv_title_row(const WatchOptions& options) {
  const ProcessReading process;
  return output::csv_titles(CsvRow{Sample(), options.verbose ? &process : nullptr, options});
}

/// Schema cmt.watch/1.
std::string watch_json(const WatchOptions& options, const std::vector<Sample>& samples, const WatchResult& result,
                       const std::optional<launch::Ended>& ended) {
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
  if (ended) {
    const auto [status, signal] = *ended;
    json.begin_object("ended");
    field("status", signal == 0 ? std::optional(status) : std::nullopt, "of its exit");
    field("signal", signal == 0 ? std::nullopt : std::optional(signal), "that ended it");
    json.end_object();
  }
  field("peak", result.peak ? std::optional(ShownSample{*result.peak, options}) : std::nullopt,
        "the sample with most bytes");
  if (!options.command.empty()) {
    field("resident_bytes_mark", result.mark.at_end ? std::optional(result.mark.bytes) : std::nullopt,
          "the kernel's VmHWM of the command's process at its end; null: not known");
    field("peak_missed", result.peak_missed(), "resident_bytes_mark is above what samples saw");
  }
  if (result.traced) field("traced", *result.traced, "the traces of --trace");
  json.begin_array("samples");
  for (const Sample& sample : samples) field.element(ShownSample{sample, options});
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace

WatchReport::WatchReport(const WatchOptions& options, Destination& destination)
    : options_(options),
      destination_(destination),
      columns_(destination.fd(), options.command.empty() ? terminal::Beside::nobody : terminal::Beside::command,
               [this] { return live_text(); }) {
  if (!options.plot.empty()) picture_.emplace(options.plot);
  if (options.form == WatchOptions::Form::csv) destination_.write(csv_title_row(options));
}

void WatchReport::show(const Sample& sample) {
  if (is_text()) show_text(sample);
  if (options_.form == WatchOptions::Form::csv) destination_.write(csv_rows(sample, options_));
}

void WatchReport::keep(const Sample& sample) {
  if (picture_ || options_.form == WatchOptions::Form::json) samples_.push_back(sample);
}

void WatchReport::end(const WatchResult& result, const std::optional<launch::Ended>& ended) {
  if (is_text()) end_text(result);
  if (options_.form == WatchOptions::Form::json) destination_.write(watch_json(options_, samples_, result, ended));
  if (picture_)
    write_picture(*picture_, watch_picture(options_, samples_, result), watch_json(options_, samples_, result, ended),
                  "cmtwatch");
}

}  // namespace cmt::watch
