// Compares the runs of a program by rounds, and with the replay.
#include "cmtreplay/tune/program_report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "cmtreplay/matrix/session.h"
#include "cmtreplay/run/statistics.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::replay {
namespace {

using output::fixed;

constexpr double error_allowed = 0.05;

template <class Figure>
double median_figure(const ProgramRow& row, Figure figure) {
  std::vector<double> samples;
  for (const ProgramRun& run : row.runs) {
    if (run.fault.empty()) samples.push_back(static_cast<double>(run.*figure));
  }
  return samples.empty() ? Ratio::none : median_of(samples);
}

/// The ratio to the default by the rounds in which both ran well.
Ratio ratio_by_rounds(const ProgramRow& row, const ProgramRow& reference, std::uint64_t ProgramRun::*figure) {
  RatioSamples samples;
  for (std::size_t i = 0; i < std::min(row.runs.size(), reference.runs.size()); ++i) {
    const ProgramRun &run = row.runs[i], &other = reference.runs[i];
    if (run.fault.empty() && other.fault.empty() && other.*figure != 0)
      samples.pairs.push_back(static_cast<double>(run.*figure) / static_cast<double>(other.*figure));
  }
  return ratio_of(samples);
}

/// The output of all runs; empty if they differ.
std::string common_output(const ProgramRow& row) {
  std::map<std::string, int> counts;
  for (const ProgramRun& run : row.runs) {
    if (run.fault.empty()) ++counts[run.output_sha256];
  }
  return counts.size() == 1 ? counts.begin()->first : "";
}

void mark_other_outputs(ProgramRow& row, const std::string& output) {
  for (ProgramRun& run : row.runs) {
    if (run.fault.empty() && !output.empty() && run.output_sha256 != output)
      run.fault = "its output differs from that with the default";
  }
}

void warn_of_faults(ProgramRow& row) {
  std::map<std::string, std::vector<const ProgramRun*>> runs;
  for (const ProgramRun& run : row.runs) {
    if (!run.fault.empty()) runs[run.fault].push_back(&run);
  }
  for (const auto& [fault, those] : runs) {
    const std::string& message = those.front()->message;
    row.warnings.push_back(output::counted(those.size(), "run") + " of " + std::to_string(row.runs.size()) +
                           " left out: " + fault + (message.empty() ? "" : ", after \"" + message + "\""));
  }
}

/// The library that serves the program in place of the C library; empty: none does.
std::string own_malloc_of(const ProgramRow& row) {
  const auto found =
      std::find_if(row.runs.begin(), row.runs.end(), [](const ProgramRun& run) { return !run.own_malloc.empty(); });
  return found == row.runs.end() ? "" : found->own_malloc;
}

void warn_of_own_malloc(ProgramRow& row, const std::string& library, bool has_predictions, bool has_libc,
                        bool is_first) {
  row.warnings.push_back("the program has " + library + " of its own, which serves it in place of " + row.name +
                         (has_predictions
                              ? ", so the replay predicts nothing for " + std::string(is_first ? "any row" : "this row")
                              : "") +
                         (has_libc ? "" : "; --alloc=libc.so.6 runs it on the C library's malloc"));
}

bool is_apart(const Ratio& ratio) { return ratio.is_known() && (ratio.high < 1 || ratio.low > 1); }

void warn_of_prediction(ProgramRow& row) {
  std::uint64_t processes = 0;
  for (const ProgramRun& run : row.runs) processes = std::max(processes, run.processes_at_peak);
  const std::string reason =
      processes > 1 ? ": the trace is of one process, and at the peak there are " + std::to_string(processes) : "";
  const auto warn = [&](const std::string& figure, const Predicted& predicted, const std::string& why) {
    if (std::abs(predicted.error()) > error_allowed)
      row.warnings.push_back("the " + figure + " is " + fixed(100 * std::abs(predicted.error()), 1) + " % " +
                             (predicted.error() > 0 ? "above" : "below") + " the replay's prediction" + why);
  };
  warn("peak", row.predicted_peak, reason);
  warn("mean", row.predicted_mean, "");
  if (row.predicted_cpu && is_apart(*row.predicted_cpu) && is_apart(row.cpu) &&
      (row.predicted_cpu->high < 1) != (row.cpu.high < 1))
    row.warnings.push_back("the program takes " + std::string(row.cpu.high < 1 ? "less" : "more") +
                           " processor time than with the default, and the replay predicted the opposite");
}

double longer_ns(const Cell& cell) {
  const Ratio wall = ratio_of(time_samples(cell));
  return is_apart(wall) ? (wall.ratio - 1) * spread_of(cell.reference_runs.wall_ns).median : 0;
}

std::string bytes_or_dash(double bytes) {
  return std::isnan(bytes) ? "-" : output::bytes_text(static_cast<std::uint64_t>(std::max(bytes, 0.0)));
}
std::string time_or_dash(double ns) { return std::isnan(ns) ? "-" : output::time_text(ns); }

}  // namespace

std::string ratio_cell(const Ratio& ratio) { return ratio.is_known() ? fixed(ratio.ratio, 3) : "-"; }

std::string interval_cell(const Ratio& ratio) {
  return ratio.is_known() ? fixed(ratio.low, 3) + " - " + fixed(ratio.high, 3) : "-";
}

Prediction prediction_of(const Cell& cell) {
  const auto medians = [](const CellRuns& runs, std::uint64_t MemoryFigures::*figure) {
    return median_memory(runs.memory, figure);
  };
  RatioSamples cpu;
  for (std::size_t i = 0; i < std::min(cell.runs.cpu_ns.size(), cell.reference_runs.cpu_ns.size()); ++i) {
    if (cell.reference_runs.cpu_ns[i] != 0)
      cpu.pairs.push_back(static_cast<double>(cell.runs.cpu_ns[i]) /
                          static_cast<double>(cell.reference_runs.cpu_ns[i]));
  }
  const std::vector<Warning> warnings = cell.warnings.value_or(std::vector<Warning>());
  const bool has_times = std::none_of(warnings.begin(), warnings.end(),
                                      [](const Warning& warning) { return warning.kind == no_times_warning; });
  return {.cpu = ratio_of(cpu),
          .peak_bytes = medians(cell.runs, &MemoryFigures::peak),
          .mean_bytes = has_times ? medians(cell.runs, &MemoryFigures::mean) : Ratio::none,
          .default_peak_bytes = medians(cell.reference_runs, &MemoryFigures::peak),
          .default_mean_bytes = medians(cell.reference_runs, &MemoryFigures::mean),
          .series = cell.series,
          .longer_ns = longer_ns(cell)};
}

double mean_shift(const CellSeries& series, const CellSeries& of_default, double factor, double longer_ns) {
  if (!series.times || !of_default.times || series.event != of_default.event || series.event.empty()) return 0;
  const CellTimes &times = *series.times, &default_times = *of_default.times;
  const auto last_clock = [](const CellTimes& all) { return static_cast<double>(all.clock_ns.back()); };
  const double by_clocks = last_clock(times) - last_clock(default_times);
  const double share = by_clocks * longer_ns > 0 ? longer_ns / by_clocks : 0;
  MeanOverTime shifted, plain;
  std::size_t before = 0;
  bool is_first = true;
  for (std::size_t i = 0; i < series.event.size(); ++i) {
    const std::uint64_t resident = series.resident_bytes[i];
    if (times.stays_ns[i] == 0 && i + 1 != series.event.size()) continue;
    const auto since = [&](const std::vector<std::uint64_t>& all) {
      return is_first ? 0 : static_cast<double>(all[i]) - static_cast<double>(all[before]);
    };
    const double stays = is_first ? 0 : static_cast<double>(times.stays_ns[before]),
                 passed = std::max(0.0, factor * (since(times.time_ns) - stays)),
                 longer = share * (since(times.clock_ns) - since(default_times.clock_ns));
    plain.add(passed, resident);
    shifted.add(std::max(0.0, passed + longer), resident);
    for (MeanOverTime* const mean : {&plain, &shifted})
      mean->add(factor * static_cast<double>(times.stays_ns[i]), resident);
    before = i;
    is_first = false;
  }
  return static_cast<double>(shifted.mean()) - static_cast<double>(plain.mean());
}

std::size_t ProgramRow::good_runs() const {
  return static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [](const ProgramRun& run) { return run.fault.empty(); }));
}

void fill_rows(ProgramReport& report, const std::vector<Prediction>& predictions) {
  const std::string output = common_output(report.rows.front()), own_of_default = own_malloc_of(report.rows.front());
  const bool has_libc = std::any_of(report.rows.begin(), report.rows.end(), [](const ProgramRow& row) {
    return row.name.find("libc.so.6") != std::string::npos;
  });
  for (ProgramRow& row : report.rows) mark_other_outputs(row, output);
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    ProgramRow& row = report.rows[i];
    const ProgramRow& reference = report.rows.front();
    row.wall = ratio_by_rounds(row, reference, &ProgramRun::wall_ns);
    row.cpu = ratio_by_rounds(row, reference, &ProgramRun::cpu_ns);
    row.peak = ratio_by_rounds(row, reference, &ProgramRun::peak_anonymous_bytes);
    row.mean = ratio_by_rounds(row, reference, &ProgramRun::mean_anonymous_bytes);
    row.wall_ns = median_figure(row, &ProgramRun::wall_ns);
    row.cpu_ns = median_figure(row, &ProgramRun::cpu_ns);
    row.minor_faults = median_figure(row, &ProgramRun::minor_faults);
    row.peak_bytes = median_figure(row, &ProgramRun::peak_bytes);
    row.predicted_peak.bytes = median_figure(row, &ProgramRun::peak_anonymous_bytes);
    row.predicted_mean.bytes = median_figure(row, &ProgramRun::mean_anonymous_bytes);
    warn_of_faults(row);
    const std::string own = own_malloc_of(row);
    if (!own.empty()) warn_of_own_malloc(row, own, !predictions.empty(), has_libc, i == 0);
    if (predictions.empty() || i == 0 || !own.empty() || !own_of_default.empty()) continue;
    const Prediction& replay = predictions[i];
    const std::optional<double> factor = report.clock_factor();  // unknown for a server, which waits
    row.predicted_cpu = replay.cpu;
    row.predicted_peak.predicted_bytes = reference.predicted_peak.bytes + replay.peak_bytes - replay.default_peak_bytes;
    row.predicted_mean.predicted_bytes =
        reference.predicted_mean.bytes + replay.mean_bytes - replay.default_mean_bytes +
        (factor ? mean_shift(replay.series, predictions.front().series, *factor, replay.longer_ns) : 0);
    warn_of_prediction(row);
  }
}

bool has_runs_of_all(const ProgramReport& report) {
  return std::all_of(report.rows.begin(), report.rows.end(),
                     [](const ProgramRow& row) { return row.good_runs() != 0; });
}

std::string program_text(const ProgramReport& report) {
  output::Table table({"program", "wall", "ratio", "interval", "CPU", "ratio", "peak", "anonymous", "ratio",
                       "predicted", "mean", "predicted", "faults", "runs"});
  std::string warnings;
  for (const ProgramRow& row : report.rows) {
    table.add({text::to_line(row.name), time_or_dash(row.wall_ns), ratio_cell(row.wall), interval_cell(row.wall),
               time_or_dash(row.cpu_ns), ratio_cell(row.cpu), bytes_or_dash(row.peak_bytes),
               bytes_or_dash(row.predicted_peak.bytes), ratio_cell(row.peak),
               bytes_or_dash(row.predicted_peak.predicted_bytes), bytes_or_dash(row.predicted_mean.bytes),
               bytes_or_dash(row.predicted_mean.predicted_bytes),
               std::isnan(row.minor_faults) ? "-" : output::with_commas(static_cast<std::uint64_t>(row.minor_faults)),
               std::to_string(row.good_runs())});
    for (const std::string& warning : row.warnings) warnings += text::to_line(row.name + ": " + warning) + "\n";
  }
  if (const std::optional<double> factor = report.clock_factor())
    warnings += "the program takes " + fixed(*factor, 2) + " times as long as while it was recorded (" +
                output::time_text(static_cast<double>(*report.recorded_ns)) + ")\n";
  return report.command + "\n" + table.text() + (warnings.empty() ? "" : "\n" + warnings);
}

}  // namespace cmt::replay
