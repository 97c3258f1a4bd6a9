/// The runs of a real program with several allocators, beside what the replay of its trace predicts.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "cmtreplay/board/ratios.h"
#include "cmtreplay/matrix/cell.h"
#include "cmtreplay/tune/program_run.h"

namespace cmt::replay {

inline constexpr std::string_view program_schema = "cmt.program/1";

/// The figures that a replay has for an allocator and for the default.
struct Prediction {
  Ratio cpu = {};
  double peak_bytes = Ratio::none, mean_bytes = Ratio::none;
  double default_peak_bytes = Ratio::none, default_mean_bytes = Ratio::none;
  CellSeries series = {};  ///< along the trace
  double longer_ns = 0;    ///< by how much a timed run is longer than with the default; 0 if that is not certain
};

/// By how much the mean grows over the time that the program takes with an allocator, instead of its time with the
/// default. The program spends longer where the allocator takes longer. `factor`: the program's time with the default
/// over the recorded one. `longer_ns`: by how much timed runs are longer in all; the clocks of the series say only
/// where. Returns 0 if the cells have no times, or different marks.
double mean_shift(const CellSeries& series, const CellSeries& of_default, double factor, double longer_ns);

/// Without a mean if the trace has no times: a replay's is then over events.
Prediction prediction_of(const Cell& cell);

/// A figure of the program, and the one that the replay predicts: the program's with the default allocator, and the
/// difference of the two replays. So memory that is not malloc's does not matter.
struct Predicted {
  double bytes = Ratio::none, predicted_bytes = Ratio::none;

  double error() const { return bytes / predicted_bytes - 1; }
};

template <class Visitor, output::DescribedAs<Predicted> P>
void describe(Visitor& field, P& predicted) {
  field("bytes", predicted.bytes, "median of the program's runs, without pages of files");
  field("predicted_bytes", predicted.predicted_bytes,
        "the program's with the default, and the difference of the replays; null: no trace");
  field("error", predicted.error(), "the first over the second, less 1");
}

/// The program with one allocator.
struct ProgramRow {
  std::string name = {};
  Ratio wall = {}, cpu = {}, peak = {}, mean = {};
  double wall_ns = Ratio::none, cpu_ns = Ratio::none, minor_faults = Ratio::none, peak_bytes = Ratio::none;
  Predicted predicted_peak = {}, predicted_mean = {};
  std::optional<Ratio> predicted_cpu = {};
  std::vector<std::string> warnings = {};
  std::vector<ProgramRun> runs = {};

  std::size_t good_runs() const;
};

template <class Visitor, output::DescribedAs<ProgramRow> R>
void describe(Visitor& field, R& row) {
  field("name", row.name, "as --alloc gave it");
  field("wall", row.wall, "over the default's, by rounds in which both ran well");
  field("cpu", row.cpu, "the same");
  field("peak", row.peak, "of anonymous memory, over the default's");
  field("mean", row.mean, "the same of the mean");
  field("wall_ns", row.wall_ns, "median, as the three that follow");
  field("cpu_ns", row.cpu_ns, "");
  field("minor_faults", row.minor_faults, "");
  field("peak_resident_bytes", row.peak_bytes, "with pages of files");
  field("anonymous_peak", row.predicted_peak, "");
  field("anonymous_mean", row.predicted_mean, "");
  field("predicted_cpu", row.predicted_cpu, "processor time of the replays, over the default's; null: no trace");
  field("warnings", row.warnings, "runs that do not count, and predictions that are wrong");
  field("runs", row.runs, "each of them, a round after the other");
}

struct ProgramReport {
  std::string command = {};
  std::string reference = {};
  std::vector<ProgramRow> rows = {};
  std::optional<std::uint64_t> recorded_ns = {};

  /// The program's wall time with the default over that of its recording.
  std::optional<double> clock_factor() const {
    if (!recorded_ns || rows.empty()) return std::nullopt;
    const double factor = rows.front().wall_ns / static_cast<double>(*recorded_ns);
    return std::isnan(factor) ? std::nullopt : std::optional(factor);
  }
};

template <class Visitor, output::DescribedAs<ProgramReport> R>
void describe(Visitor& field, R& report) {
  field("schema", program_schema, "the name and version of this form");
  field("command", report.command, "the program");
  field("default", report.reference, "the first allocator, which ratios are to");
  field("allocators", report.rows, "in the order asked for, the default first");
  field("recorded_ns", report.recorded_ns, "the time of the recorded program; null: not known, or a server");
  field("clock_factor", report.clock_factor(),
        "wall time with the default over recorded_ns: below 1 the recording slowed the program; null: not known");
}

/// Marks runs whose output differs from that with the default, unless the default's own runs differ. Fills in the
/// figures of all rows, of the runs without a fault. `predictions`: one for each row, or none.
void fill_rows(ProgramReport& report, const std::vector<Prediction>& predictions);

/// A ratio and its interval as cells of a table.
std::string ratio_cell(const Ratio& ratio);
std::string interval_cell(const Ratio& ratio);

/// Whether the program has run well at least once with each allocator.
bool has_runs_of_all(const ProgramReport& report);
std::string program_text(const ProgramReport& report);

}  // namespace cmt::replay
