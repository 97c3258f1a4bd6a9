#include "cmtwatch/report/cost_json.h"
#include "cmtwatch/report/wss_report.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

using output::JsonWriter;

void append(JsonWriter& json, const MappingFilter& filter) {
  json.begin_object("filter");
  json.begin_array("kinds");
  for (const MappingFilter::Kind kind : filter.kinds) json.value(name_of(kind));
  json.end_array();
  json.field("permissions", filter.permissions);
  json.field("longer_than_pages", filter.longer_than);
  json.end_object();
}

void append(JsonWriter& json, const TouchedMapping& of) {
  json.begin_object();
  json.field("begin", output::hex(of.mapping.begin));
  json.field("end", output::hex(of.mapping.end));
  json.field("permissions", of.mapping.permissions);
  json.field("name", of.mapping.name);
  json.field("working_set_bytes", of.touched_bytes);
  json.field("resident_bytes", of.mapping.resident_bytes);
  json.field("huge_page_bytes", of.mapping.huge_page_bytes);
  json.field("not_tracked_bytes", of.untracked_bytes);
  json.end_object();
}

void append(JsonWriter& json, const WorkingSet& set, bool pauses) {
  json.begin_object();
  json.field("begin_ns", set.begin_ns);
  json.field("end_ns", set.end_ns);
  json.field("interval_ns", set.length_ns());
  json.field("marking_ns", set.marking_ns);
  json.field("reading_ns", set.reading_ns);
  if (pauses) json.field("paused_ns", set.paused_ns);
  json.field("working_set_bytes", set.touched.touched_bytes());
  json.field("working_set_pages", set.pages());
  json.field("resident_bytes", set.touched.resident_bytes());
  json.field("huge_page_bytes", set.touched.huge_page_bytes());
  json.field("not_tracked_bytes", set.touched.untracked_bytes());
  json.field("mappings_too_long_to_look_at", std::uint64_t{set.touched.too_long});
  json.begin_array("mappings");
  for (const TouchedMapping& mapping : set.touched.mappings) append(json, mapping);
  json.end_array();
  json.end_object();
}

void append(JsonWriter& json, const char* key, const ReuseDistance::Histogram& histogram) {
  json.begin_array(key);
  for (const auto& [pages, uses] : histogram) {
    json.begin_object();
    json.field("distance_pages", pages);
    json.field("uses", uses);
    json.end_object();
  }
  json.end_array();
}

void append(JsonWriter& json, const ReuseDistance& reuse) {
  json.begin_object("reuse_distance");
  json.field("uses", reuse.uses());
  json.field("first_uses", reuse.first_uses());
  append(json, "lower_bounds", reuse.lower());
  append(json, "upper_bounds", reuse.upper());
  json.end_object();
}

}  // namespace

std::string to_json(const WssOptions& options, const WssMethod& method, const std::vector<WorkingSet>& sets,
                    const Outcome& outcome, const ReuseDistance& reuse) {
  JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.wss/1");
  json.field("pid", options.target.pid);
  json.field("method", method.method == TouchMethod::idle ? "idle" : "referenced");
  json.field("not_page_by_page_because", method.obstacle.empty() ? std::nullopt : std::optional(method.obstacle));
  append(json, options.target.filter);
  json.field("page_bytes", process::page_bytes());
  json.field("interval_ns", options.pace.interval_ns);
  json.field("elapsed_ns", outcome.elapsed_ns);
  json.field("ended", outcome.gone);
  append_cost(json, outcome, options.pause);
  method.method == TouchMethod::idle ? append(json, reuse) : json.field("reuse_distance", std::nullopt);
  json.begin_array("samples");
  for (const WorkingSet& set : sets) append(json, set, options.pause);
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace cmt::watch
