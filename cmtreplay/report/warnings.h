/// Warnings: what was not replayed as it was recorded, or should be known beside the figures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cmtreplay/report/report.h"
#include "cmtreplay/run/runs.h"
#include "toolkit/output/fields.h"

namespace cmt::replay {

/// One warning, as a line of a replay's messages.
struct Warning {
  std::string kind = {};  ///< the words without numbers, by which a board counts warnings
  std::string text = {};  ///< the words with the numbers
};

template <class Visitor, output::DescribedAs<Warning> W>
void describe(Visitor& field, W& warning) {
  field("kind", warning.kind, "the same words whatever the numbers");
  field("text", warning.text, "as a replay of this trace alone says it");
}

/// The parts of a trace that are not replayed as they were recorded.
std::vector<Warning> trace_warnings(const PreparedTrace& trace, const std::string& path);

/// A warning if the replay writes much of which the trace does not say whether the program wrote it.
std::vector<Warning> memory_warnings(const PreparedTrace& trace, const ReplayOptions& options);

/// A warning if more threads run at once than there are processors.
std::vector<Warning> crowd_warnings(const PreparedTrace& trace, const ReplayOptions& options);

/// The calls that an allocator lacks, and clocks that it read other than the recorded one.
std::vector<Warning> allocator_warnings(const AllocatorResult& result, const TraceFacts& facts,
                                        const ReplayOptions& options);

/// The calls of the trace that an allocator lacks. For a preloaded library they say what a program would get.
std::vector<Warning> emulation_warnings(const Allocator& allocator, const TraceFacts& facts);

/// All warnings of a replay, one line each, with the name of the trace or of the allocator before each.
/// of_tables: those of table_warnings() too.
std::vector<std::string> warning_lines(const Report& report, bool of_tables = true);

/// Whether an allocator read another clock than the recorded one. If it gives memory back by the clock, it gives back
/// less in a replay that is faster than the program.
bool purges_by_other_clock(const AllocatorResult& result, const ReplayOptions& options);

/// The number of timed runs that something else has disturbed, mostly. 0 if there are fewer than five runs.
std::size_t outlier_runs(const AllocatorResult& result);

/// The time of the timed runs in which an allocator's threads waited and did not run, and the time in which they wanted
/// to run.
double lost_ns(const AllocatorResult& result);
double wanted_ns(const AllocatorResult& result);
/// Whether the first is so large a part of the second that other programs, or a shared processor, disturb the times.
bool is_busy(double lost, double wanted);

/// Whether a library is a C library: libc.so.6 of glibc, libc.musl-x86_64.so.1 and ld-musl-x86_64.so.1 of musl.
bool is_of_libc(std::string_view library);

/// Clock, outliers and a busy machine as warnings. In a replay of one trace the tables show them instead.
std::vector<Warning> table_warnings(const AllocatorResult& result, const ReplayOptions& options);

}  // namespace cmt::replay
