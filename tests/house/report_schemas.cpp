// report_fields: prints doc/reports.md, the list of all fields of all reports in JSON, from their descriptions. A new
// report gets a line in main().

#include <cstdio>
#include <string>
#include <vector>

#include "analysis/differences/difference.h"
#include "analysis/held_pages/page_holders.h"
#include "analysis/places/summary.h"
#include "analysis/stacks/contributors.h"
#include "cmtreplay/board/board.h"
#include "cmtreplay/plan/prepared_trace.h"
#include "cmtreplay/report/comparison.h"
#include "cmtreplay/report/same_program.h"
#include "cmtreplay/report/verification.h"
#include "cmtreplay/run/memory_run.h"
#include "cmtreplay/run/runs.h"
#include "cmtreplay/run/statistics.h"
#include "cmtreport/diff/diff_report.h"
#include "cmtreport/report/report.h"
#include "lifetimes/baseline.h"
#include "lifetimes/summary.h"
#include "tests/house/field_list.h"
#include "trace2cmt/inspect/info.h"

namespace {

using cmt::output::FieldDoc;

constexpr const char* head = R"(# Reports in JSON

Every field of the reports of all tools but `cmtwatch` (whose keys are in `cmtwatch/report/`), printed by `tests/house/report_fields.cpp` from the descriptions in the code:

    cmake --build build/dev --target report_fields && build/dev/tests/house/report_fields >doc/reports.md

- A key ends with its unit: `_bytes`, `_ns`, `_pages`. Other numbers are counts.
- `a[].b` is the field `b` of each element of the array `a`; `a.b` is the field `b` of the object `a`.
- `tuples` is an array of arrays, in the order that the meaning gives. The first entry of a histogram's tuple is the least
  number of its class, or the class's name. All other entries are numbers.
- `or null`: the value is not known. A ratio is null where it is not a number. `may be absent`: the key is left out in some
  reports.
)";

std::string type_text(const FieldDoc& field) {
  return field.type + (field.may_be_null ? " or null" : "") + (field.may_be_absent ? ", may be absent" : "");
}

void print_heading(const char* schema, const char* command, const char* remark) {
  std::printf("\n## %s\n\n`%s`%s\n\n| key | type | meaning |\n|---|---|---|\n", schema, command, remark);
}

void print_fields(const std::vector<FieldDoc>& fields) {
  for (const FieldDoc& field : fields) {
    std::printf("| `%s` | %s | %s |\n", field.key.c_str(), type_text(field).c_str(), field.doc.c_str());
  }
}

/// A report that is one described struct.
template <class Report>
void print_report(const char* schema, const char* command) {
  print_heading(schema, command, "");
  print_fields(cmt::output::list_fields<Report>());
}

/// The report of a difference, without the fields of the differences in it.
void print_diff_report() {
  print_heading("cmt.diff_report/1", "cmtreport --diff=... --json", "");
  std::vector<FieldDoc> fields = cmt::output::list_fields<cmt::report::DiffReport>();
  std::erase_if(fields, [](const FieldDoc& field) {
    return field.key.starts_with("by_function.") || field.key.starts_with("by_size.");
  });
  print_fields(fields);
}

/// The described parts of the replay's report.
void print_replay_report() {
  using namespace cmt::replay;
  print_heading("cmt.replay/1", "cmtreplay --json",
                ": the figures. Beside these the report has `mode` and `machine`, and the names and settings of each "
                "allocator; `baseline` has the fields of an allocator.");
  print_fields(cmt::output::list_fields<TraceFacts>("trace."));
  for (FieldDoc field : cmt::output::list_fields<TimedSample>("allocators[].")) {
    field.type = "object";
    field.doc += std::string(field.doc.empty() ? "" : "; ") + "median, min, max and samples[] of the timed runs";
    print_fields({field});
  }
  print_fields(cmt::output::list_fields<LatencyCounts>("allocators[].latency."));
  print_fields(cmt::output::list_fields<Interval>("allocators[].wall_ns_median_95."));
  print_fields(cmt::output::list_fields<MemoryRun>("allocators[]."));
  print_fields(cmt::output::list_fields<MemoryFigures>("allocators[].memory_runs[]."));
  print_fields(cmt::output::list_fields<Death>("allocators[].death."));
  print_fields(cmt::output::list_fields<Comparison>("time_comparisons[]."));
  print_fields(cmt::output::list_fields<Comparison>("peak_comparisons[]."));
  print_fields(
      {{"verdict", "texts", "both in words, a line each", false, false},
       {"warnings", "texts", "what was not replayed as recorded, and what stood out, a line each", false, false}});
}

void print_same_program() {
  print_heading("cmt.same_program/1", "cmtreplay --same-program --json", "");
  for (const FieldDoc& field : cmt::output::list_fields<cmt::replay::SameProgram>()) {
    if (!field.key.starts_with("recordings[].")) print_fields({field});
  }
}

void print_verification() {
  print_heading("cmt.replay/1", "cmtreplay --verify --json", "");
  print_fields(cmt::output::list_fields<cmt::replay::Verification>("verified[]."));
}

void print_info_report() {
  print_heading("cmt.info/1", "trace2cmt --info --json",
                ": touched_min_bytes to untouched_bytes only where touched pages were recorded, from stream_blocks on "
                "only of a .cmt.");
  print_fields(cmt::output::list_fields<cmt::trace2cmt::Info>());
  print_fields(cmt::output::list_fields<cmt::Totals>());
  print_fields(cmt::output::list_fields<cmt::trace2cmt::StackCounts>());
  print_fields(cmt::output::list_fields<cmt::trace2cmt::RunTimes>());
  print_fields(cmt::output::list_fields<cmt::trace2cmt::TouchCounts>());
  print_fields(cmt::output::list_fields<cmt::trace2cmt::Layout>());
}

}  // namespace

int main() {
  std::fputs(head, stdout);
  print_report<cmt::lifetimes::Summary>("cmt.lifetimes/1", "lifetimes --json");
  print_report<cmt::analysis::Contributors>("cmt.contributors/1", "lifetimes --by=... --json");
  print_report<cmt::analysis::Difference>("cmt.difference/1", "lifetimes --diff=... --json");
  print_report<cmt::lifetimes::ProgramGate>("cmt.program_gate/1", "lifetimes --baseline=OLD --json");
  print_report<cmt::analysis::Summary>("cmt.overhead/1", "overhead --json");
  print_report<cmt::analysis::PageHolders>("cmt.page_holders/1", "overhead --by=... --json");
  print_report<cmt::report::Report>("cmt.report/1", "cmtreport --json");
  print_fields({{"pages", "object", "where blocks have addresses, or with --overhead: a cmt.overhead/1", false, true},
                {"pages.holders.by_function", "tuples",
                 "the 100 functions with most unused bytes: [name, blocks, live_bytes, page_bytes, unused_bytes, "
                 "sole_bytes]",
                 false, true},
                {"replay", "object", "with --replay: a cmt.replay/1", false, true},
                {"watch", "object", "with --watch: as cmtwatch wrote it", false, true}});
  print_diff_report();
  print_replay_report();
  print_same_program();
  print_verification();
  print_report<cmt::replay::Cell>("cmt.cell/1", "cmtreplay --results=DIR: a file");
  print_report<cmt::replay::Board>("cmt.board/1", "cmtreplay --json of several traces");
  print_info_report();
}
