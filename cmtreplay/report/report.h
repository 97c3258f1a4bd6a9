#pragma once

#include <span>
#include <string>
#include <vector>

#include "cmtreplay/run/runs.h"
#include "cmtreplay/run/summary.h"

namespace cmt::replay {

/// What the reports are made from.
struct Report {
  std::string file;
  std::string format;  ///< "text", "cmt", "legacy_cmt"
  unsigned rounds = 0;
  const PreparedTrace& trace;
  std::vector<Result> results;  ///< in the order asked for
  Result baseline;              ///< of the null allocator
  bool interrupted = false;
  unsigned timeout_seconds = 0;
  double pace = 0;
  std::string touch = {};
  std::string counters_missing = {};  ///< why there are no hardware counters; empty: there are
};

/// One figure of all timed runs of an allocator.
std::vector<std::uint64_t> samples(const Result& result, std::uint64_t TimedSample::*figure);

/// Resident bytes over live bytes where most bytes were live; NaN where none ever were.
double fragmentation(const MemoryRun& memory, const TraceFacts& facts);

/// Calls that a library lacks, by name.
std::vector<std::string> replaced_names(const Allocator& allocator);

/// For people: a line about the trace, and a table, fastest first, the null allocator last.
std::string table_text(const Report& report);

/// The same figures for spreadsheets: a line an allocator in the order asked for, the null allocator last, units in the
/// titles.
std::string csv_text(const Report& report);

/// For programs: schema cmt.replay/1.
std::string json_text(const Report& report);

}  // namespace cmt::replay
