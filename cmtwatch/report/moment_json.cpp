#include "cmtwatch/recording/breakdown.h"
#include "cmtwatch/report/moment_report.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"

namespace cmt::watch {
namespace {

using output::JsonWriter;

void append(JsonWriter& json, const process::Mapping& mapping) {
  json.begin_object();
  json.field("begin", output::hex(mapping.begin));
  json.field("end", output::hex(mapping.end));
  json.field("permissions", mapping.permissions);
  json.field("name", mapping.name.empty() ? std::nullopt : std::optional(mapping.name));
  json.field("resident_bytes", mapping.resident_bytes);
  json.field("proportional_bytes", mapping.proportional_bytes);
  json.field("private_bytes", mapping.private_bytes);
  json.field("dirty_bytes", mapping.dirty_bytes);
  json.field("referenced_bytes", mapping.referenced_bytes);
  json.field("anonymous_bytes", mapping.anonymous_bytes);
  json.field("huge_page_bytes", mapping.huge_page_bytes);
  json.field("swapped_bytes", mapping.swapped_bytes);
  json.end_object();
}

void append(JsonWriter& json, const Part& part) {
  json.begin_object();
  json.field("name", part.name);
  json.field("mappings", part.mappings);
  json.field("resident_bytes", part.resident_bytes);
  json.field("proportional_bytes", part.proportional_bytes);
  json.field("anonymous_bytes", part.anonymous_bytes);
  json.field("swapped_bytes", part.swapped_bytes);
  json.end_object();
}

void append(JsonWriter& json, const RecordedProcess& process) {
  json.begin_object();
  json.field("pid", process.pid);
  json.field("name", process.name);
  json.field("command", process.command);
  json.field("resident_bytes", process.resident_bytes);
  json.field("size_bytes", process.size_bytes);
  json.field("proportional_bytes", process.proportional_bytes);
  json.field("oom_score", process.oom_score);
  json.field("mappings_readable", process.mappings_readable);
  json.begin_array("mappings");
  for (const process::Mapping& mapping : process.mappings) append(json, mapping);
  json.end_array();
  json.end_object();
}

void append(JsonWriter& json, const RecordedMachine& machine) {
  json.begin_object("system");
  json.field("total_bytes", machine.total_bytes);
  json.field("available_bytes", machine.available_bytes);
  json.field("swap_total_bytes", machine.swap_total_bytes);
  json.field("swap_free_bytes", machine.swap_free_bytes);
  json.end_object();
}

}  // namespace

std::string moment_json(const Moment& moment) {
  std::vector<std::vector<process::Mapping>> all;
  for (const RecordedProcess& process : moment.processes) all.push_back(process.mappings);
  JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.moment/1");
  json.field("tick", moment.tick);
  json.field("begin_ns", moment.begin_ns);
  json.field("end_ns", moment.end_ns);
  json.field("wall_ns", moment.wall_ns);
  json.field("metric", moment.sum().metric());
  json.field("bytes", moment.sum().bytes());
  moment.machine ? append(json, *moment.machine) : json.field("system", std::nullopt);
  json.begin_array("parts");
  for (const Part& part : break_down(all).parts) append(json, part);
  json.end_array();
  json.begin_array("processes");
  for (const RecordedProcess& process : moment.processes) append(json, process);
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace cmt::watch
