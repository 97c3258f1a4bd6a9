/// Replays a trace without and with calls of malloc_trim, to know what they give a program and cost it (--trim-at).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmt/reader.h"
#include "cmtreplay/report/report.h"
#include "toolkit/output/fields.h"

namespace cmt::replay {

/// The places of the calls.
struct TrimPoints {
  bool at_end = false;        ///< before the tear-down or, if there is none, after the last event
  std::string mark = {};      ///< at each mark with this label; empty: at none
  std::int64_t every_ns = 0;  ///< of the recorded time; 0: not by time
};

/// Copies a trace to a file as .cmt, with calls of malloc_trim(0) added. `before_teardown`: the event before the
/// tear-down, from 1; 0: there is none. Returns the number of calls. Throws std::system_error.
std::uint64_t copy_with_trims(Reader& reader, const TrimPoints& points, std::uint64_t before_teardown, int fd);

/// A figure of the replays without and with the calls.
struct TrimmedFigure {
  double without = LatencySummary::none, with = LatencySummary::none;
};

template <class Visitor, output::DescribedAs<TrimmedFigure> F>
void describe(Visitor& field, F& figure) {
  field("without", figure.without, "the calls: a median");
  field("with", figure.with, "the calls: a median");
}

struct TrimRow {
  std::string name = {};
  TrimmedFigure wall_ns = {}, cpu_ns = {}, minor_faults = {}, peak_bytes = {}, mean_bytes = {}, end_bytes = {};
  std::uint64_t missing = 0;
};

template <class Visitor, output::DescribedAs<TrimRow> R>
void describe(Visitor& field, R& row) {
  field("name", row.name, "as --alloc gave it");
  field("wall_ns", row.wall_ns, "of the timed runs");
  field("cpu_ns", row.cpu_ns, "of the timed runs");
  field("minor_faults", row.minor_faults, "of the timed runs");
  field("peak_resident_bytes", row.peak_bytes, "of the memory runs");
  field("mean_resident_bytes", row.mean_bytes, "of the memory runs");
  field("before_teardown_resident_bytes", row.end_bytes,
        "of the memory runs, at the last moment before the tear-down, or at the end");
  field("missing_calls", row.missing, "calls for which the allocator has no counterpart");
}

struct TrimReport {
  std::string file = {};
  std::string trim_at = {};
  std::uint64_t calls = 0;
  std::vector<TrimRow> rows = {};
};

template <class Visitor, output::DescribedAs<TrimReport> R>
void describe(Visitor& field, R& report) {
  field("schema", "cmt.trims/1", "the name and version of this form");
  field("file", report.file, "the trace");
  field("trim_at", report.trim_at, "as --trim-at gave it");
  field("calls", report.calls, "of malloc_trim that were added");
  field("allocators", report.rows, "in the order asked for");
}

/// Adds the figures of a replay, of the one without the calls first.
void add_figures(TrimReport& report, const std::vector<AllocatorResult>& results, double TrimmedFigure::*side);

std::string trims_text(const TrimReport& report);

}  // namespace cmt::replay
