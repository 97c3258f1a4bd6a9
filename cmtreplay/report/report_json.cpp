#include <sys/utsname.h>

#include <cmath>
#include <limits>

#include "cmtreplay/protocol.h"
#include "cmtreplay/report/report.h"
#include "cmtreplay/report/report_details.h"
#include "toolkit/output/json.h"
#include "toolkit/process/proc_file.h"

namespace cmt::replay {
namespace {

using output::JsonWriter;

/// What stands between two marks on the first line of a kernel's file that begins with `key`; null where it does not.
std::optional<std::string> excerpt(const std::string& path, const std::string& key, const std::string& begin,
                                   const std::string& end) {
  try {
    const std::string text = process::read_file(path);
    const auto line = text.find(key);
    const auto from = line == text.npos ? line : text.find(begin, line);
    if (from == text.npos) return std::nullopt;
    const auto first = from + begin.size();
    return text.substr(first, text.find(end, first) - first);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void write_machine(JsonWriter& json) {
  utsname kernel{};
  uname(&kernel);
  json.begin_object("machine");
  json.field("kernel", std::string(kernel.sysname) + " " + kernel.release);
  json.field("cpu", excerpt("/proc/cpuinfo", "model name", ": ", "\n"));
  json.field("huge_pages", excerpt("/sys/kernel/mm/transparent_hugepage/enabled", "", "[", "]"));
  json.end_object();
}

void write_trace(JsonWriter& json, const Report& report) {
  const TraceFacts& facts = report.trace.facts();
  json.begin_object("trace");
  json.field("file", report.file);
  json.field("format", report.format);
  json.field("events", facts.events);
  json.field("calls", facts.calls);
  json.field("failed_calls", facts.failed_calls);
  json.field("unknown_blocks", facts.unknown_blocks);
  json.field("other_events", facts.other_events);
  json.field("defects", facts.defects);
  json.field("truncated", facts.truncated);
  json.field("peak_live_bytes", facts.peak_live.bytes);
  json.field("peak_live_bytes_event", facts.peak_live_bytes_event);
  json.field("peak_live_blocks", facts.peak_live.blocks);
  json.field("end_live_bytes", facts.end_live.bytes);
  json.field("end_live_blocks", facts.end_live.blocks);
  if (facts.recorded_ns == unknown)
    json.field("recorded_ns", std::nullopt);
  else
    json.field("recorded_ns", facts.recorded_ns);
  json.field("sized_frees", facts.sized_frees);
  json.end_object();
}

std::string_view order_name(Order order) {
  switch (order) {
    case Order::one_thread:
      return "one_thread";
    case Order::free:
      return "free";
    case Order::strict:
      return "strict";
  }
  return "";
}

void write_mode(JsonWriter& json, const Report& report) {
  json.begin_object("mode");
  json.field("operations", report.trace.chunks() ? "prepared" : "streamed");
  json.field("operations_bytes", report.trace.operations_bytes());
  json.field("slots", report.trace.slots());
  json.field("replay_bytes", report.baseline.replay_bytes);
  json.field("order", order_name(report.trace.order()));
  json.field("threads", report.trace.counts().lives);
  json.field("threads_at_once", report.trace.lanes());
  json.field("true_dependencies", report.trace.counts().foreign);
  json.field("false_dependencies", report.trace.counts().fences);
  json.field("touch", report.touch);
  json.field("pace", report.pace > 0 ? report.pace : std::numeric_limits<double>::quiet_NaN());
  if (report.counters_missing.empty())
    json.field("counters_missing", std::nullopt);
  else
    json.field("counters_missing", report.counters_missing);
  json.field("runs", report.rounds);
  json.field("interrupted", report.interrupted);
  json.end_object();
}

void write_samples(JsonWriter& json, const std::string& key, const std::vector<std::uint64_t>& values) {
  const Summary summary = summarise(values);
  json.begin_object(key);
  json.field("median", summary.median);
  json.field("min", summary.min);
  json.field("max", summary.max);
  json.begin_array("samples");
  for (const std::uint64_t value : values) json.value(value);
  json.end_array();
  json.end_object();
}

void write_timed(JsonWriter& json, const Result& result, const Report& report) {
  const double calls = static_cast<double>(report.trace.facts().calls);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double wall_ns = summarise(samples(result, &TimedSample::wall_ns)).median;
  const double null_ns = summarise(samples(report.baseline, &TimedSample::wall_ns)).median;
  json.field("ns_per_call", result.timed.empty() ? nan : wall_ns / calls);
  json.field("ns_per_call_over_null",
             result.timed.empty() || report.baseline.timed.empty() ? nan : (wall_ns - null_ns) / calls);
  const std::uint64_t recorded_ns = report.trace.facts().recorded_ns;
  json.field("speed_up", result.timed.empty() || recorded_ns == unknown || !(wall_ns > 0)
                             ? nan
                             : static_cast<double>(recorded_ns) / wall_ns);
  if (result.timed.empty()) return;
  write_samples(json, "wall_ns", samples(result, &TimedSample::wall_ns));
  write_samples(json, "cpu_ns", samples(result, &TimedSample::cpu_ns));
  write_samples(json, "minor_faults", samples(result, &TimedSample::minor_faults));
  write_samples(json, "major_faults", samples(result, &TimedSample::major_faults));
  write_samples(json, "refused_calls", samples(result, &TimedSample::refused_calls));
  write_samples(json, "starved_ns", samples(result, &TimedSample::starved_ns));
  write_samples(json, "block_waits", samples(result, &TimedSample::block_waits));
  write_samples(json, "block_wait_ns", samples(result, &TimedSample::block_wait_ns));
  write_samples(json, "window_waits", samples(result, &TimedSample::window_waits));
  write_samples(json, "window_wait_ns", samples(result, &TimedSample::window_wait_ns));
  write_samples(json, "turn_waits", samples(result, &TimedSample::turn_waits));
}

std::optional<std::uint64_t> slop_bytes(const MarkSample& sample) {
  if (!sample.usable_bytes || *sample.usable_bytes < sample.mark.live.bytes) return std::nullopt;
  return *sample.usable_bytes - sample.mark.live.bytes;
}

void write_timeline(JsonWriter& json, const MemoryRun& memory) {
  json.field("timeline_cpu_ns", memory.timeline_cpu_ns);
  json.begin_array("timeline");
  for (const TimelineSample& sample : memory.timeline) {
    json.begin_object();
    json.field("clock_ns", sample.clock_ns);
    json.field("event", sample.event);
    json.field("resident_bytes", sample.resident_bytes);
    json.end_object();
  }
  json.end_array();
}

/// What is said of the moment of most live bytes.
void write_peak(JsonWriter& json, const MemoryRun& memory, const TraceFacts& facts) {
  const MarkSample* const peak = memory.at(facts.peak_live_bytes_event);
  json.field("resident_bytes_at_peak_live", peak ? std::optional(peak->memory.resident_bytes) : std::nullopt);
  json.field("fragmentation", fragmentation(memory, facts));
  json.field("slop_bytes_at_peak_live", peak ? slop_bytes(*peak) : std::nullopt);
}

void write_mark(JsonWriter& json, const MarkSample& sample) {
  json.begin_object();
  json.field("event", sample.mark.event);
  if (sample.mark.time_ns == unknown)
    json.field("time_ns", std::nullopt);
  else
    json.field("time_ns", sample.mark.time_ns);
  json.field("clock_ns", sample.clock_ns);
  json.field("live_bytes", sample.mark.live.bytes);
  json.field("live_blocks", sample.mark.live.blocks);
  json.field("resident_bytes", sample.memory.resident_bytes);
  json.field("anonymous_bytes", sample.memory.anonymous_bytes);
  json.field("usable_bytes", sample.usable_bytes);
  json.field("slop_bytes", slop_bytes(sample));
  json.field("working_set_pages", sample.working_set_pages);
  json.field("lazy_free_bytes", sample.memory.lazy_free_bytes);
  json.field("huge_page_bytes", sample.memory.huge_page_bytes);
  json.field("swapped_bytes", sample.memory.swapped_bytes);
  json.field("minor_faults", sample.minor_faults);
  json.field("major_faults", sample.major_faults);
  json.end_object();
}

void write_memory(JsonWriter& json, const MemoryRun& memory, const TraceFacts& facts) {
  json.field("start_resident_bytes", memory.start_bytes);
  json.field("peak_resident_bytes", memory.peak_bytes());
  json.field("peak_resident_bytes_at_marks", memory.peak_at_marks_bytes);
  json.field("peak_resident_bytes_by_high_water", memory.peak_by_high_water_bytes);
  json.field("peak_resident_over_peak_live",
             static_cast<double>(memory.peak_bytes()) / static_cast<double>(facts.peak_live.bytes));
  write_peak(json, memory, facts);
  json.field("end_resident_bytes", memory.marks.empty() ? 0 : memory.marks.back().memory.resident_bytes);
  json.field("drained_resident_bytes", memory.drained_bytes);
  write_timeline(json, memory);
  json.begin_array("marks");
  for (const MarkSample& sample : memory.marks) write_mark(json, sample);
  json.end_array();
}

void write_death(JsonWriter& json, const Death& death, const Report& report) {
  json.begin_object("death");
  json.field("event", death.event);
  json.field("signal", death.ending.signal);
  json.field("exit_status", death.ending.status);
  json.field("hung", death.hung);
  json.field("text", death.text(report.timeout_seconds));
  json.end_object();
}

void write_fields(JsonWriter& json, const Result& result, const Report& report) {
  json.field("name", result.allocator.name);
  if (result.allocator.null)
    json.field("library", std::nullopt);
  else
    json.field("library", result.allocator.library);
  if (result.allocator.prefix.empty())
    json.field("prefix", std::nullopt);
  else
    json.field("prefix", result.allocator.prefix);
  json.begin_array("settings");
  for (const std::string& setting : result.allocator.settings) json.value(setting);
  json.end_array();
  json.begin_array("replaced_calls");
  for (const std::string& name : replaced_names(result.allocator)) json.value(name);
  json.end_array();
  if (result.death)
    write_death(json, *result.death, report);
  else
    json.field("death", std::nullopt);
  write_timed(json, result, report);
  if (!result.timed.empty()) write_details(json, result);
  if (result.memory) write_memory(json, *result.memory, report.trace.facts());
}

}  // namespace

std::vector<std::uint64_t> samples(const Result& result, std::uint64_t TimedSample::*figure) {
  std::vector<std::uint64_t> values;
  for (const TimedSample& sample : result.timed) values.push_back(sample.*figure);
  return values;
}

double fragmentation(const MemoryRun& memory, const TraceFacts& facts) {
  const MarkSample* const peak = memory.at(facts.peak_live_bytes_event);
  if (!peak) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(peak->memory.resident_bytes) / static_cast<double>(facts.peak_live.bytes);
}

std::vector<std::string> replaced_names(const Allocator& allocator) {
  std::vector<std::string> names;
  for (int i = 0; i < call_count; ++i) {
    if (allocator.replaced >> i & 1) names.emplace_back(call_names[i]);
  }
  return names;
}

std::string json_text(const Report& report) {
  JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.replay/1");
  write_trace(json, report);
  write_mode(json, report);
  write_machine(json);
  json.begin_array("allocators");
  for (const Result& result : report.results) {
    json.begin_object();
    write_fields(json, result, report);
    json.end_object();
  }
  json.end_array();
  json.begin_object("baseline");
  write_fields(json, report.baseline, report);
  json.end_object();
  json.end_object();
  return json.take();
}

}  // namespace cmt::replay
