/// Several recordings of one command as one input (--same-program).
///
/// A program is not the same in each run: a build with threads, a just-in-time compiler or an address as a hash key
/// make other calls. A verdict about one recording is about that recording. Here each recording is replayed by itself,
/// and the spread over them is the interval of the verdict.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cmtreplay/report/report_fields.h"

namespace cmt::replay {

/// Joins the comparisons of several recordings, in each of which a pair of allocators has to be. The ratio is the
/// median, and the interval holds the intervals of all recordings. A pair is certain if that interval does not
/// contain 1.
std::vector<Comparison> join_comparisons(const std::vector<std::vector<Comparison>>& recordings);

/// The whole report.
struct SameProgram {
  std::vector<ReportFields> recordings = {};

  std::vector<Comparison> times() const;
  std::vector<Comparison> peaks() const;
  std::vector<std::string> verdict() const;
};

template <class Visitor, output::DescribedAs<SameProgram> S>
void describe(Visitor& field, S& report) {
  field("schema", "cmt.same_program/1", "the kind of report and its version");
  field("time_comparisons", report.times(), "every pair over all recordings, by the time of their runs");
  field("peak_comparisons", report.peaks(), "every pair over all recordings, by peak resident memory");
  field("verdict", report.verdict(), "both in words, a line each");
  field("recordings", report.recordings, "the report cmt.replay/1 of each");
}

/// For people: the range of each allocator's figures over the recordings, and the verdict.
std::string table_text(const SameProgram& report);
/// Appends the CSV of a recording, with its name as the first column, to that of the recordings before.
void append_csv(std::string& csv, const std::string& file, std::string_view recording);
/// For programs: schema cmt.same_program/1.
std::string json_text(const SameProgram& report);

}  // namespace cmt::replay
