/// Warnings: what was not replayed as it was recorded, or should be known beside the figures.
#pragma once

#include <string>
#include <vector>

#include "cmtreplay/report/report.h"
#include "cmtreplay/run/runs.h"
#include "toolkit/output/fields.h"

namespace cmt::replay {

/// A line of a replay about what is not as it was recorded, or should be known beside the figures.
struct Warning {
  std::string kind = {};  ///< the same words whatever the numbers: to be counted by
  std::string text = {};  ///< with the numbers
};

template <class Visitor, output::DescribedAs<Warning> W>
void describe(Visitor& field, W& warning) {
  field("kind", warning.kind, "the same words whatever the numbers");
  field("text", warning.text, "as a replay of this trace alone says it");
}

/// What of a trace is not replayed as it was recorded.
std::vector<Warning> trace_warnings(const PreparedTrace& trace);

/// Whether more threads run at once than there are processors.
std::vector<Warning> crowd_warnings(const PreparedTrace& trace, const ReplayOptions& options);

/// What an allocator lacks, and by which clock it purged.
std::vector<Warning> allocator_warnings(const AllocatorResult& result, const TraceFacts& facts);

/// All of the above and of table_warnings(), as a line each, with the name of the trace or the allocator before it.
std::vector<std::string> warning_lines(const Report& report);

/// Whether an allocator that gives memory back by the clock read another one than the recorded: in a replay that is
/// faster than the program it gives back less.
bool purges_by_other_clock(const AllocatorResult& result, const ReplayOptions& options);

/// Timed runs that something else has disturbed, mostly; 0 where they are fewer than five.
std::size_t outlier_runs(const AllocatorResult& result);

/// Both of these, which the tables of a replay of one trace have elsewhere.
std::vector<Warning> table_warnings(const AllocatorResult& result, const ReplayOptions& options);

}  // namespace cmt::replay
