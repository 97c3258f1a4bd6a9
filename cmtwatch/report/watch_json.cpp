#include "cmtwatch/report/cost_json.h"
#include "cmtwatch/report/watch_report.h"
#include "toolkit/output/json.h"

namespace cmt::watch {
namespace {

using output::JsonWriter;

std::optional<std::uint64_t> bytes_of(const Sample& sample) {
  return sample.processes == 0 ? std::nullopt : std::optional(sample.bytes);
}

/// Beside resident bytes; what is beyond the live ones is negative where blocks were asked for and not used.
void append(JsonWriter& json, const std::optional<Live>& live, const std::optional<std::uint64_t>& bytes) {
  json.field("live_bytes", live ? std::optional(live->bytes) : std::nullopt);
  json.field("live_blocks", live ? std::optional(live->blocks) : std::nullopt);
  json.field("beyond_live_bytes",
             live && bytes ? std::optional(static_cast<std::int64_t>(*bytes - live->bytes)) : std::nullopt);
}

void append(JsonWriter& json, const ProcessReading& process, bool traced) {
  json.begin_object();
  json.field("pid", process.pid);
  json.field("parent_pid", process.parent);
  json.field("name", process.name);
  json.field("bytes", process.bytes);
  if (traced) append(json, process.live, process.bytes);
  json.end_object();
}

void append(JsonWriter& json, const Options& options, const Sample& sample) {
  json.field("begin_ns", sample.begin_ns);
  json.field("end_ns", sample.end_ns);
  json.field("bytes", bytes_of(sample));
  json.field("processes", sample.processes);
  json.field("processes_not_readable", sample.refused);
  if (options.pause) {
    json.field("paused_ns", sample.paused_ns);
    json.field("processes_not_paused", std::uint64_t{sample.not_paused});
  }
  if (!options.trace.empty()) {
    append(json, sample.live, bytes_of(sample));
    json.field("processes_not_traced", sample.untraced);
  }
  if (!options.verbose || sample.by_process.empty()) return;
  json.begin_array("by_process");
  for (const ProcessReading& process : sample.by_process) append(json, process, !options.trace.empty());
  json.end_array();
}

void append_target(JsonWriter& json, const Options& options) {
  if (options.command.empty()) return json.field("pid", options.pid);
  json.begin_array("command");
  for (const std::string& word : options.command) json.value(word);
  json.end_array();
}

void append_traced(JsonWriter& json, const Traced& traced) {
  json.begin_object("traced");
  json.field("cost_cpu_ns", traced.cost_cpu_ns);
  json.field("events_lost_or_in_doubt", traced.repairs);
  json.begin_array("traces");
  for (const InsideTrace& trace : traced.traces) {
    json.begin_object();
    json.field("path", trace.path);
    json.field("program", trace.program);
    json.field("pid", trace.pid);
    json.field("begin_ns", trace.begin_ns);
    json.field("events", trace.events);
    json.field("live_bytes_peak", trace.live_bytes_peak);
    json.field("whole", trace.whole);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void append_peak(JsonWriter& json, const Options& options, const Outcome& outcome) {
  if (!outcome.peak) return json.field("peak", std::nullopt);
  json.begin_object("peak");
  append(json, options, *outcome.peak);
  json.end_object();
}

void append_ended(JsonWriter& json, const command::Ended& ended) {
  json.begin_object("ended");
  json.field("status", ended.signal == 0 ? std::optional(ended.status) : std::nullopt);
  json.field("signal", ended.signal == 0 ? std::nullopt : std::optional(ended.signal));
  json.field("resident_bytes_peak_of_one_process", ended.resident_bytes_peak);
  json.end_object();
}

}  // namespace

std::string to_json(const Options& options, const std::vector<Sample>& samples, const Outcome& outcome,
                    const std::optional<command::Ended>& ended) {
  JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.watch/1");
  append_target(json, options);
  json.field("metric", name_of(options.metric));
  json.field("recursive", options.recursive);
  json.field("interval_ns", options.pace.interval_ns);
  json.field("elapsed_ns", outcome.elapsed_ns);
  append_cost(json, outcome, options.pause);
  if (ended) append_ended(json, *ended);
  append_peak(json, options, outcome);
  if (outcome.traced) append_traced(json, *outcome.traced);
  json.begin_array("samples");
  for (const Sample& sample : samples) {
    json.begin_object();
    append(json, options, sample);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

void JsonReport::end(const Outcome& outcome, const std::optional<command::Ended>& ended) {
  destination_.write(to_json(options_, samples_, outcome, ended));
}

}  // namespace cmt::watch
