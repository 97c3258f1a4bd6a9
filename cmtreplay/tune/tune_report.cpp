// Judges the finalists of a search, and writes the report as text and CSV.
#include "cmtreplay/tune/tune_report.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::replay {
namespace {

using output::bytes_text;
using output::fixed;

/// A replay's peak may be so far from the program's (comparison.cpp).
constexpr double least_gain = 0.985;

bool is_allowed(Aim aim, const Measured& each) {
  if (aim == Aim::memory) return each.time.ratio <= time_allowed;
  if (aim == Aim::time) return each.peak.ratio <= peak_allowed;
  return each.time.ratio <= time_allowed * peak_allowed && each.peak.ratio <= peak_allowed;
}

double figure(Aim aim, const Measured& each) {
  if (aim == Aim::memory) return each.peak.ratio;
  return aim == Aim::time ? each.time.ratio : each.time.ratio * each.peak.ratio;
}

bool has_less_memory(const Measured& each) { return each.peak.ratio <= least_gain && each.peak.high < 1; }

bool is_better(Aim aim, const Measured& each) {
  const bool is_faster = each.time.high < 1;
  if (aim == Aim::memory) return has_less_memory(each);
  if (aim == Aim::time) return is_faster;
  return figure(aim, each) <= least_gain && (is_faster || has_less_memory(each));
}

bool is_certain(Aim aim, const Measured& each) {
  if (each.time.interval != interval_of_95) return false;
  if (aim == Aim::memory) return each.time.high <= time_allowed;
  if (aim == Aim::time) return each.peak.high <= peak_allowed;
  return each.time.high * each.peak.high < 1;
}

/// A row of the CSV.
struct CsvLine {
  TunedRow row = {};
};

template <class Visitor, output::DescribedAs<CsvLine> L>
void describe(Visitor& field, L& line) {
  field("alloc", line.row.alloc, "");
  field("runs", line.row.runs, "");
  field("time_ratio", line.row.time.ratio, "");
  field("time_low", line.row.time.low, "");
  field("time_high", line.row.time.high, "");
  field("peak_ratio", line.row.peak.ratio, "");
  field("mean_ratio", line.row.mean.ratio, "");
  describe(field, line.row.figures);
  field("best", line.row.is_best, "");
  field("state", line.row.state, "");
}

/// "8.1 % less (7.9 to 8.4)".
std::string change_text(const Ratio& ratio) {
  const double change = 100 * (ratio.ratio - 1), low = 100 * (ratio.low - 1), high = 100 * (ratio.high - 1);
  const auto number = [&](double value) { return fixed(change < 0 ? -value : value, 1); };
  return number(change) + " % " + (change < 0 ? "less" : "more") + " (" + number(change < 0 ? high : low) + " to " +
         number(change < 0 ? low : high) + " %)";
}

std::string aim_text(const std::string& aim) {
  if (aim == "memory") return "least memory within 2 % of the default's time";
  return aim == "time" ? "least time within 5 % of the default's memory" : "best of both";
}

std::string recommendation_text(const Recommendation& each, bool is_whole) {
  std::string text = aim_text(each.aim) + ": ";
  if (each.is_default) {
    text += is_whole ? "the default is best\n" : "not known: nothing that was tried is better than the default\n";
    if (!each.refuted.empty()) text += "  the program did not confirm " + each.refuted + ", best in the replay\n";
    return text;
  }
  text += *each.title + "\n  peak " + change_text(each.peak) + ", time " + change_text(each.time) + "\n";
  if (!each.is_certain)
    text += each.aim == name_of(Aim::both)
                ? "  not certain: with the upper ends of both intervals the product is not below the default's\n"
                : "  not certain: the interval of time, or of the peak, reaches beyond what this aim allows\n";
  if (each.is_unproved) text += "  not proved: no run of the program without settings succeeded\n";
  text += "  " + each.lines.env + "\n  " + each.lines.systemd + "\n  " + each.lines.dockerfile + "\n";
  for (const TunedLoss& loss : each.losses)
    text += "  " + loss.trace + ": time " + fixed(loss.time, 3) + ", peak " + fixed(loss.peak, 3) + "; alone " +
            loss.best + ": " + fixed(loss.best_time, 3) + ", " + fixed(loss.best_peak, 3) + "\n";
  return text;
}

output::Table table_of(const TuneReport& report) {
  output::Table table(
      {"setting", "time", "ratio", "interval", "peak", "ratio", "mean", "ratio", "faults", "huge pages", "runs"});
  const auto bytes = [](const std::optional<std::uint64_t>& value) { return value ? bytes_text(*value) : "-"; };
  const auto add = [&](const std::string& title, const TunedFigures& figures, std::vector<std::string> ratios,
                       const std::string& runs) {
    table.add({title, figures.wall_ns ? output::time_text(*figures.wall_ns) : "-", ratios[0], ratios[1],
               bytes(figures.peak_bytes), ratios[2], bytes(figures.mean_bytes), ratios[3],
               figures.minor_faults ? output::with_commas(*figures.minor_faults) : "-",
               figures.huge_page_bytes ? huge_pages_text(*figures.huge_page_bytes, figures.zero_bytes) : "-", runs});
  };
  add(report.reference + " (default)", report.default_figures, {"1", "-", "1", "1"}, "-");
  for (const TunedRow& row : report.rows) {
    if (!row.is_best) continue;
    add(row.title, row.figures,
        {ratio_cell(row.time), interval_cell(row.time), ratio_cell(row.peak), ratio_cell(row.mean)},
        std::to_string(row.runs));
  }
  return table;
}

std::string untried_text(const std::vector<UntriedSetting>& settings, const std::string& title) {
  std::string text;
  for (const UntriedSetting& each : settings) text += "  " + each.title + ": " + each.reason + "\n";
  return text.empty() ? text : "\n" + title + ":\n" + text;
}

/// The settings that crashed, hung or refused calls.
std::vector<UntriedSetting> failed_settings(const TuneReport& report) {
  std::vector<UntriedSetting> failed;
  for (const TunedRow& row : report.rows) {
    if (row.state) failed.push_back({row.title, *row.state});
  }
  return failed;
}

/// A machine on which times vary is worth knowing of: the intervals are wide, and the search takes long.
std::string deviation_text(const TuneReport& report) {
  constexpr double much = 0.05;
  if (report.time_deviation < much) return "";
  std::uint64_t most = 0;
  for (const TunedRow& row : report.rows) most = std::max(most, row.runs);
  const std::string text = "times vary by " + fixed(100 * report.time_deviation, 0) + " % between rounds";
  if (most <= 12) return text + "; the budget allowed no more runs than where they do not\n";
  return text + ", so the best settings had " + output::counted(most, "run") +
         "; a machine without other work needs fewer\n";
}

std::string times_text(const TuneReport& report) {
  std::string text;
  for (const std::string& trace : report.without_times)
    text += trace +
            ": has no recorded times, so settings that give memory back after a time cannot be judged; "
            "record with cmttrace --time\n";
  return text;
}

}  // namespace

TunedFigures figures_of(const CellRuns& runs) {
  TunedFigures figures;
  if (!runs.wall_ns.empty()) figures.wall_ns = spread_of(runs.wall_ns).median;
  if (!runs.minor_faults.empty())
    figures.minor_faults = static_cast<std::uint64_t>(spread_of(runs.minor_faults).median);
  if (runs.memory.empty()) return figures;
  figures.peak_bytes = static_cast<std::uint64_t>(median_memory(runs.memory, &MemoryFigures::peak));
  figures.mean_bytes = static_cast<std::uint64_t>(median_memory(runs.memory, &MemoryFigures::mean));
  const auto median_of_known = [&](std::optional<std::uint64_t> MemoryFigures::*figure) {
    std::vector<std::uint64_t> known;
    for (const MemoryFigures& run : runs.memory) {
      if (run.*figure) known.push_back(*(run.*figure));
    }
    const bool is_known = !known.empty();
    return is_known ? std::optional(static_cast<std::uint64_t>(spread_of(std::move(known)).median)) : std::nullopt;
  };
  figures.huge_page_bytes = median_of_known(&MemoryFigures::huge_pages);
  figures.zero_bytes = median_of_known(&MemoryFigures::zeros);
  return figures;
}

std::string name_of(Aim aim) { return aim == Aim::memory ? "memory" : aim == Aim::time ? "time" : "both"; }

void mark_best(std::vector<TunedRow>& rows) {
  std::uint64_t most = 0;
  for (const TunedRow& row : rows) most = std::max(most, row.runs);
  const auto counts = [most](const TunedRow& row) { return !row.state && 4 * row.runs >= most; };
  const auto beats = [](const TunedRow& a, const TunedRow& b) {
    const bool is_as_good =
        a.time.ratio <= b.time.ratio && a.peak.ratio <= b.peak.ratio && a.mean.ratio <= b.mean.ratio;
    return is_as_good && (a.time.ratio < b.time.ratio || a.peak.ratio < b.peak.ratio || a.mean.ratio < b.mean.ratio);
  };
  for (TunedRow& row : rows)
    row.is_best = counts(row) && std::none_of(rows.begin(), rows.end(), [&](const TunedRow& other) {
                    return counts(other) && beats(other, row);
                  });
}

Recommendation recommend(Aim aim, const std::vector<Measured>& finalists) {
  const Measured* best = nullptr;
  const auto rank = [aim](const Measured& each) {  // ties go to one that is a row of the table
    return std::tuple(figure(aim, each), each.time.ratio, each.peak.ratio, each.mean.ratio);
  };
  for (const Measured& each : finalists) {
    if (each.is_measured() && is_allowed(aim, each) && is_better(aim, each) && (!best || rank(each) < rank(*best)))
      best = &each;
  }
  Recommendation recommendation{.aim = name_of(aim)};
  if (!best) return recommendation;
  recommendation.is_default = false;
  recommendation.is_certain = is_certain(aim, *best);
  recommendation.title = best->candidate.title();
  recommendation.time = best->time;
  recommendation.peak = best->peak;
  return recommendation;
}

void confirm(Aim aim, Recommendation& recommendation, const ProgramRow& row) {
  if (recommendation.is_default) return;
  const bool is_confirmed = row.wall.is_known() && row.peak.is_known() &&
                            (aim == Aim::memory ? row.peak.ratio < 1 && row.wall.low <= time_allowed
                             : aim == Aim::time ? row.wall.ratio < 1 && row.peak.low <= peak_allowed
                                                : row.wall.ratio * row.peak.ratio < 1);
  if (is_confirmed) return;
  recommendation = {.aim = recommendation.aim, .refuted = *recommendation.title};
}

std::string tune_text(const TuneReport& report) {
  std::string text;
  for (const CellTrace& trace : report.traces)
    text += trace.name + ": " + output::counted(trace.events, "event") + ", at most " +
            bytes_text(trace.peak_live_bytes) + " live\n";
  text += std::to_string(report.rows.size()) + " of about " + output::counted(report.asked, "setting") + " tried in " +
          output::time_text(1e9 * report.seconds) + "; these are best in time, peak or mean:\n\n";
  text += table_of(report).text() + "\n";
  for (const Recommendation& each : report.recommendations) text += recommendation_text(each, report.is_whole());
  if (report.program) text += "\n" + program_text(*report.program) + "\n";
  if (!report.is_whole())
    text +=
        "the budget ended the search early; the same command with --results=DIR continues it, --tune-budget=TIME "
        "gives it more\n";
  text += deviation_text(report);
  text += times_text(report);
  text += untried_text(failed_settings(report), "tried, and not measured");
  text += untried_text(report.ignored, "ignored by the installed library, and not tried");
  text += untried_text(report.unknown, "tried, although the library could not be asked whether it knows them");
  return text + untried_text(report.left_out, "not tried");
}

std::string tune_csv(const TuneReport& report) {
  std::string text = output::csv_titles<CsvLine>();
  for (const TunedRow& row : report.rows) text += output::csv_row(CsvLine{row});
  return text;
}

}  // namespace cmt::replay
