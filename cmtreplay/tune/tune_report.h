/// The result of a search: the settings that no other one beats in time, peak and mean at once, and what to set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmtreplay/matrix/cell.h"
#include "cmtreplay/tune/program_report.h"
#include "cmtreplay/tune/search.h"

namespace cmt::replay {

inline constexpr std::string_view tune_schema = "cmt.tune/1";

/// The figures of a candidate on one trace: medians of its runs.
struct TunedFigures {
  std::optional<double> wall_ns = {};
  std::optional<std::uint64_t> peak_bytes = {}, mean_bytes = {}, minor_faults = {}, huge_page_bytes = {},
                               zero_bytes = {};
};

template <class Visitor, output::DescribedAs<TunedFigures> F>
void describe(Visitor& field, F& figures) {
  field("wall_ns", figures.wall_ns, "median of the timed runs");
  field("peak_resident_bytes", figures.peak_bytes, "median of the memory runs");
  field("mean_resident_bytes", figures.mean_bytes, "median of the memory runs");
  field("minor_faults", figures.minor_faults, "median of the timed runs");
  field("huge_page_bytes", figures.huge_page_bytes, "the most in transparent huge pages at any mark");
  field("zero_bytes", figures.zero_bytes,
        "resident at the peak of live bytes, in pages of 4 KiB that hold only zeros; null: not counted");
}

TunedFigures figures_of(const CellRuns& runs);

/// A candidate as the report has it.
struct TunedRow {
  std::string title = {};
  std::string alloc = {};
  std::vector<std::string> environment = {};
  std::uint64_t runs = 0;
  Ratio time = {}, peak = {}, mean = {};
  TunedFigures figures = {};
  bool is_best = false;  ///< no other candidate is at least as good in time, peak and mean
  std::optional<std::string> state = {};
};

template <class Visitor, output::DescribedAs<TunedRow> R>
void describe(Visitor& field, R& row) {
  field("title", row.title, "for people");
  field("alloc", row.alloc, "as --alloc takes it");
  field("environment", row.environment, "NAME=VALUE each, without LD_PRELOAD");
  field("runs", row.runs, "timed runs on each trace");
  field("time", row.time, "over the default's, of the same rounds; of several traces the geometric mean");
  field("peak", row.peak, "peak resident bytes, the same");
  field("mean", row.mean, "mean resident bytes, the same");
  field("figures", row.figures, "of one trace; null where there are several");
  field("best", row.is_best, "whether no other one is at least as good in time, peak and mean");
  field("state", row.state, "why it was not measured; null: it was");
}

/// The loss on one trace by a setting for all traces.
struct TunedLoss {
  std::string trace = {};
  double time = Ratio::none, peak = Ratio::none;
  std::string best = {};
  double best_time = Ratio::none, best_peak = Ratio::none;
};

template <class Visitor, output::DescribedAs<TunedLoss> L>
void describe(Visitor& field, L& loss) {
  field("trace", loss.trace, "its name");
  field("time", loss.time, "of the recommended setting over the default's, on this trace");
  field("peak", loss.peak, "the same of peak resident bytes");
  field("best", loss.best, "the best for the same aim on this trace alone");
  field("best_time", loss.best_time, "of that over the default's");
  field("best_peak", loss.best_peak, "the same of peak resident bytes");
}

/// The setting that is recommended for an aim.
struct Recommendation {
  std::string aim = {};
  bool is_default = true;
  bool is_certain = false;
  std::optional<std::string> title = {};
  Ratio time = {}, peak = {};
  SettingLines lines = {};
  std::vector<TunedLoss> losses = {};
  std::string refuted = {};
  bool is_unproved = false;
};

template <class Visitor, output::DescribedAs<Recommendation> R>
void describe(Visitor& field, R& recommendation) {
  field("aim", recommendation.aim, "memory, time or both");
  field("is_default", recommendation.is_default, "the default is best");
  field("is_certain", recommendation.is_certain,
        "whether the intervals of time and peak show it; else only the medians do");
  field("title", recommendation.title, "of the setting; null: the default");
  field("time", recommendation.time, "over the default's");
  field("peak", recommendation.peak, "over the default's");
  field("env", recommendation.lines.env, "the line for a shell; empty: nothing has to be set");
  field("systemd", recommendation.lines.systemd, "the line of a unit");
  field("dockerfile", recommendation.lines.dockerfile, "the line of a Dockerfile");
  field("losses", recommendation.losses, "of several traces, by one setting for all");
  field("refuted", recommendation.refuted,
        "a setting that is best in the replay, and that the program of --command did not confirm; empty: none");
  field("is_unproved", recommendation.is_unproved,
        "whether the program of --command failed in each run with the default, so that nothing is proved");
}

/// A setting that was not tried, or that the library does not answer for.
struct UntriedSetting {
  std::string title = {};
  std::string reason = {};
};

template <class Visitor, output::DescribedAs<UntriedSetting> S>
void describe(Visitor& field, S& setting) {
  field("title", setting.title, "of the allocator with this setting");
  field("reason", setting.reason, "in words");
}

struct TuneReport {
  std::string reference = {};
  std::vector<CellTrace> traces = {};
  std::vector<std::string> without_times = {};
  Machine machine = {};
  TunedFigures default_figures = {};
  std::uint64_t asked = 0;  ///< candidates that the search wanted to try
  double seconds = 0;
  std::uint64_t timed_runs = 0;
  double time_deviation = 0;

  /// Whether the budget has paid for all of them.
  bool is_whole() const { return rows.size() >= asked; }

  std::vector<TunedRow> rows = {};
  std::vector<Recommendation> recommendations = {};
  std::vector<UntriedSetting> ignored = {}, unknown = {}, left_out = {};
  std::optional<ProgramReport> program = {};
};

template <class Visitor, output::DescribedAs<TuneReport> R>
void describe(Visitor& field, R& report) {
  field("schema", tune_schema, "the name and version of this form");
  field("default", report.reference, "the allocator that ratios are to");
  field("traces", report.traces, "");
  field("without_times", report.without_times, "names of traces without recorded times");
  field("machine", report.machine, "");
  field("default_figures", report.default_figures, "of one trace; null where there are several");
  field("wanted", report.asked, "candidates that the search wanted to try");
  field("whole", report.is_whole(), "whether all of them were tried; else the budget has ended the search early");
  field("seconds", report.seconds, "that the search took, without cells that were there");
  field("timed_runs", report.timed_runs, "on each trace, of all candidates in all stages");
  field("time_deviation", report.time_deviation,
        "by which the ratio of times varies between rounds: the standard deviation of its logarithm; 0: not known");
  field("candidates", report.rows, "all that were tried");
  field("recommendations", report.recommendations, "one for each aim");
  field("ignored", report.ignored, "settings that the installed library ignores; they were not tried");
  field("unknown", report.unknown, "settings that the library could not be asked about; they were tried");
  field("left_out", report.left_out, "settings that were not tried for another reason");
  field("program", report.program, "the program of --command with the recommended settings; null: not given");
}

/// Marks the rows that no other one beats: that is at least as good in time, peak and mean, and better in one. Rows of
/// few runs do not count, as their times are chance.
void mark_best(std::vector<TunedRow>& rows);

/// The best of the candidates for an aim, or the default if none is better by more than chance. A peak has to be 1.5 %
/// lower, as far as a replay may be from the program, and an interval of time has to be below 1. The result has neither
/// lines nor losses.
Recommendation recommend(Aim aim, const std::vector<Measured>& finalists);

/// Takes a recommendation back if the program's own runs with it do not confirm the aim.
void confirm(Aim aim, Recommendation& recommendation, const ProgramRow& row);

std::string name_of(Aim aim);
std::string tune_text(const TuneReport& report);
std::string tune_csv(const TuneReport& report);

}  // namespace cmt::replay
