// report_schemas FOLDER: writes the JSON schemas of all reports, format-spec/reports/, from the descriptions of their
// fields. A new report gets a line in main().

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/differences/difference.h"
#include "analysis/held_pages/page_holders.h"
#include "analysis/places/summary.h"
#include "analysis/stacks/contributors.h"
#include "cmtreplay/board/board.h"
#include "cmtreplay/plan/prepared_trace.h"
#include "cmtreplay/report/report_fields.h"
#include "cmtreplay/report/same_program.h"
#include "cmtreplay/report/trims.h"
#include "cmtreplay/report/verification.h"
#include "cmtreplay/run/memory_run.h"
#include "cmtreplay/run/runs.h"
#include "cmtreplay/run/statistics.h"
#include "cmtreplay/tune/tune_report.h"
#include "cmtreport/diff/diff_report.h"
#include "cmtreport/report/report.h"
#include "cmtwatch/explain/explain_fields.h"
#include "lifetimes/as_if_sampled.h"
#include "lifetimes/baseline.h"
#include "lifetimes/summary.h"
#include "overhead/pool_use.h"
#include "tests/house/field_list.h"
#include "trace2cmt/inspect/info.h"

namespace {

using cmt::output::FieldDoc;

/// The schema of one report, made of the flat list of its fields.
class Schema {
 public:
  Schema(std::string name, const std::string& command, const std::string& remark = {}) : name_(std::move(name)) {
    root_ = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
             {"title", name_},
             {"description", command + (remark.empty() ? "" : ": " + remark)},
             {"type", "object"}};
    add({"schema", "text", "the name and version of this form", false, false});
  }

  /// "a[].b" is the field `b` of each element of the array `a`.
  void add(const FieldDoc& field) {
    Json* object = &root_;
    std::string_view key = field.key;
    for (std::size_t dot; (dot = key.find('.')) != key.npos; key.remove_prefix(dot + 1)) {
      std::string_view part = key.substr(0, dot);
      const bool is_array = part.ends_with("[]");
      if (is_array) part.remove_suffix(2);
      object = &(*object)["properties"][std::string(part)];
      if (is_array) object = &(*object)["items"];
      if (!object->contains("type")) (*object)["type"] = "object";
    }
    const std::string name(key);
    (*object)["properties"][name].update(described(field));
    if (field.may_be_absent) return;
    Json& required = (*object)["required"];
    if (std::find(required.begin(), required.end(), name) == required.end()) required.push_back(name);
  }
  void add(const std::vector<FieldDoc>& fields) {
    for (const FieldDoc& field : fields) add(field);
  }

  void write(const std::string& folder) const {
    std::string file = name_;
    std::replace(file.begin(), file.end(), '/', '.');
    std::ofstream out(folder + "/" + file + ".schema.json");
    out << root_.dump(1) << "\n";
    if (!out.flush()) throw std::runtime_error(folder + ": cannot be written");
  }

 private:
  using Json = nlohmann::ordered_json;

  static Json type_of(const std::string& type) {
    if (type == "text") return "string";
    if (type == "true or false") return "boolean";
    if (type == "number" || type == "object") return type;
    return "array";
  }

  static Json described(const FieldDoc& field) {
    Json json;
    const Json type = type_of(field.type);
    json["type"] = field.may_be_null ? Json::array({type, "null"}) : type;
    if (!field.doc.empty()) json["description"] = field.doc;
    if (type == "array") {
      const std::string of = field.type;
      json["items"]["type"] = of == "objects"   ? Json("object")
                              : of == "numbers" ? Json::array({"number", "null"})
                              : of == "texts"   ? Json("string")
                                                : Json("array");
    }
    return json;
  }

  std::string name_;
  Json root_;
};

std::string folder;

/// A report that is one described struct.
template <class Report>
void write_report(const char* name, const char* command) {
  Schema schema(name, command);
  schema.add(cmt::output::list_fields<Report>());
  schema.write(folder);
}

/// The report of a difference, without the fields of the differences in it.
void write_diff_report() {
  Schema schema("cmt.diff_report/1", "cmtreport --diff=... --json", "by_function and by_size are as cmt.difference/1");
  for (const FieldDoc& field : cmt::output::list_fields<cmt::report::DiffReport>()) {
    if (!field.key.starts_with("by_function.") && !field.key.starts_with("by_size.")) schema.add(field);
  }
  schema.write(folder);
}

void write_report_of_trace() {
  Schema schema("cmt.report/1", "cmtreport --json");
  schema.add(cmt::output::list_fields<cmt::report::Report>());
  schema.add({{"pages", "object", "where blocks have addresses, or with --overhead: a cmt.overhead/1", false, true},
              {"pages.holders.by_function", "tuples",
               "the 100 functions with most unused bytes: [name, blocks, live_bytes, page_bytes, unused_bytes, "
               "sole_bytes]",
               false, true},
              {"replay", "object", "with --replay: a cmt.replay/1", false, true},
              {"watch", "object", "with --watch: as cmtwatch wrote it", false, true}});
  schema.write(folder);
}

/// The report of a replay, and that of --verify, which has the same name. Fields of runs are absent if there were none.
void write_replay_report() {
  using namespace cmt::replay;
  Schema schema("cmt.replay/1", "cmtreplay --json, cmtreplay --verify --json",
                "baseline has the fields of an allocator. With --verify it has trace and verified alone");
  const auto add = [&](std::vector<FieldDoc> fields) {  // a replay has these, a verification others
    for (FieldDoc& field : fields) {
      field.may_be_absent = true;
      if (!field.key.starts_with("baseline.")) schema.add(field);
    }
  };
  add(cmt::output::list_fields<ReportFields>());
  add(cmt::output::list_fields<TimedSpreads>("allocators[]."));
  add({{"allocators[].warm_up_wall_ns", "number", "of the run before the timed ones; null: there was none", true, true},
       {"allocators[].wall_ns_median_95", "object", "around the median", false, true},
       {"allocators[].latency", "object", "how long single calls took", false, true},
       {"allocators[].counters", "object", "hardware counters, in user mode", false, true}});
  add(cmt::output::list_fields<Interval>("allocators[].wall_ns_median_95."));
  add(cmt::output::list_fields<LatencyCounts>("allocators[].latency."));
  add(cmt::output::list_fields<CounterMedians>("allocators[].counters."));
  add(cmt::output::list_fields<MemoryRun>("allocators[]."));
  add({{"verified", "objects", "with --verify: the allocators, in the order asked for", false, true}});
  add(cmt::output::list_fields<Verification>("verified[]."));
  schema.write(folder);
}

void write_same_program() {
  Schema schema("cmt.same_program/1", "cmtreplay --same-program --json", "recordings[] are as cmt.replay/1");
  for (const FieldDoc& field : cmt::output::list_fields<cmt::replay::SameProgram>()) {
    if (!field.key.starts_with("recordings[].")) schema.add(field);
  }
  schema.write(folder);
}

void write_info_report() {
  Schema schema(
      "cmt.info/1", "trace2cmt --info --json",
      "touched_min_bytes to untouched_bytes only where touched pages were recorded, from stream_blocks on only "
      "of a .cmt. A sampled trace has the totals, events to repairs_by_kind, in samples");
  schema.add(cmt::output::list_fields<cmt::trace2cmt::Info>());
  const auto add = [&](std::vector<FieldDoc> fields) {
    for (FieldDoc& field : fields) {
      field.may_be_absent = true;
      schema.add(field);
    }
  };
  add(cmt::output::list_fields<cmt::Totals>());
  add(cmt::output::list_fields<cmt::trace2cmt::SampleTotals>());
  add(cmt::output::list_fields<cmt::trace2cmt::StackCounts>());
  add(cmt::output::list_fields<cmt::trace2cmt::RunTimes>());
  add(cmt::output::list_fields<cmt::trace2cmt::TouchCounts>());
  add(cmt::output::list_fields<cmt::trace2cmt::Layout>());
  schema.write(folder);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("Usage: report_schemas FOLDER\n", stderr), 2;
  folder = argv[1];
  try {
    write_report<cmt::lifetimes::Summary>("cmt.lifetimes/1", "lifetimes --json");
    write_report<cmt::lifetimes::SamplerReport>("cmt.as_if_sampled/1", "lifetimes --as-if-sampled=... --json");
    write_report<cmt::analysis::Contributors>("cmt.contributors/1", "lifetimes --by=... --json");
    write_report<cmt::analysis::Difference>("cmt.difference/1", "lifetimes --diff=... --json");
    write_report<cmt::lifetimes::ProgramGate>("cmt.program_gate/1", "lifetimes --baseline=OLD --json");
    write_report<cmt::analysis::Summary>("cmt.overhead/1", "overhead --json");
    write_report<cmt::analysis::PageHolders>("cmt.page_holders/1", "overhead --by=... --json");
    write_report<cmt::overhead::PoolSummary>("cmt.pool_overhead/1", "overhead --pool=... --json");
    write_report_of_trace();
    write_diff_report();
    write_replay_report();
    write_same_program();
    write_report<cmt::replay::Cell>("cmt.cell/1", "cmtreplay --results=DIR: a file");
    write_report<cmt::replay::Board>("cmt.board/1", "cmtreplay --json of several traces");
    write_report<cmt::replay::TuneReport>("cmt.tune/1", "cmtreplay --tune --json");
    write_report<cmt::replay::ProgramReport>("cmt.program/1", "cmtreplay --command=... --json");
    write_report<cmt::replay::TrimReport>("cmt.trims/1", "cmtreplay --trim-at=... --json");
    write_info_report();
    write_report<cmt::watch::explain::ExplainReport>("cmt.explain/1", "cmtwatch explain --json");
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "report_schemas: %s\n", error.what()), 1;
  }
}
