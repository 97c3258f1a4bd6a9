/// The reports of a replay: text, CSV, JSON and a picture.
#pragma once

#include <string>
#include <vector>

#include "cmtreplay/run/control/program_clock.h"
#include "cmtreplay/run/runs.h"
#include "toolkit/output/table.h"
#include "toolkit/picture/picture.h"

namespace cmt::replay {

/// The data of all reports.
struct Report {
  const ReplayOptions& options;
  const PreparedTrace& trace;
  ReplayResults results;
};

/// Processor time of a call outside of the kernel, of the allocator and the replay together. NaN if nothing was called.
/// The kernel's part is the mean over the runs: a kernel that counts by ticks gives a single run only whole ticks.
double user_ns_per_call(const AllocatorResult& result, const TraceFacts& facts);
double mean_kernel_ns(const AllocatorResult& result);
/// The processor time of a replay on the recorded allocator, less that of the null allocator, over that of the recorded
/// program. NaN if it is not known, or the recorded allocator is not among those replayed.
double allocator_share(const Report& report);
/// The clock that allocators read in the memory runs. Without points: it is not scaled.
ProgramClock clock_of(const Report& report);
/// The most calls that one run of the allocator refused.
std::uint64_t refused_calls(const AllocatorResult& result);
/// The median of a hardware counter over all timed runs that have it, or nothing if none has it.
std::optional<double> median_counter(const AllocatorResult& result, std::size_t counter);

/// The names of the calls that a library lacks.
std::vector<std::string> replaced_names(const Allocator& allocator);

/// For people: a line about the trace.
std::string title_text(const Report& report);
/// For people: tables of time and of memory, fastest first and the null allocator last.
std::vector<output::Table> main_tables(const Report& report);
/// For people: tables of latencies and of hardware counters, as far as they were measured.
std::vector<output::Table> detail_tables(const Report& report);
/// For people: how to read the tables, and a verdict on each pair.
std::string notes_text(const Report& report);
/// For people: all of these.
std::string report_text(const Report& report);

/// For spreadsheets: the figures of the table, a row for each allocator in the order asked for, the null allocator
/// last.
std::string csv_text(const Report& report);

/// Live and resident memory along the trace for all allocators, how long calls took, and the tables. `is_page`: they
/// are tables of a page, and only the notes are text.
picture::Picture to_picture(const Report& report, bool is_page);

/// For programs: schema cmt.replay/1.
std::string json_text(const Report& report);

}  // namespace cmt::replay
