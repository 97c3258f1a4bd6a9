// Judges the figures one by one, and then all together: only the number of figures says which p is certain.
#include "cmtreplay/board/gate.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "cmtreplay/board/rank_tests.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"

namespace cmt::replay {
namespace {

using command::Limit;

/// A row of the CSV of a gate.
struct GateRow {
  Judgement judgement = {};
};

template <class Visitor, output::DescribedAs<GateRow> Row>
void describe(Visitor& field, Row& row) {
  const Judgement& judgement = row.judgement;
  field("trace", judgement.trace, "");
  field("allocator", judgement.allocator, "");
  field("figure", judgement.figure, "");
  field("judgement", std::string(!judgement.is_judged ? "not judged" : judgement.is_worse ? "worse" : "not worse"), "");
  field("change_ratio", judgement.change.ratio, "");
  field("change_low", judgement.change.low, "");
  field("change_high", judgement.change.high, "");
  field("change_interval", judgement.change.interval, "");
  field("p", judgement.p, "");
  field("allowed", judgement.allowed, "");
  field("text", judgement.text, "");
}

/// The trace's name in the judgement of all traces together.
constexpr const char* all_traces = "all traces";

std::string percent_text(double ratio) {
  const double change = 100 * (ratio - 1);
  return (change < 0 ? "" : "+") + output::fixed(change, std::abs(change) < 9.95 ? 1 : 0) + " %";
}

Judgement judgement_of(const Cell& cell, const std::string& figure, double allowed) {
  return {.trace = cell.trace.name, .allocator = cell.allocator.name, .figure = figure, .allowed = allowed};
}

/// Begins the text of a judgement.
std::string place_of(const Judgement& judgement) {
  return text::to_line(judgement.trace + ": " + judgement.allocator + ": ");
}

Judgement not_judged(Judgement judgement, const std::string& reason) {
  judgement.is_judged = false;
  judgement.text =
      place_of(judgement) + (judgement.figure == "run" ? "" : judgement.figure + ": ") + text::to_line(reason);
  return judgement;
}

/// Sets `is_worse` by the shares, and the text. The caller sets `is_certain`, since that takes all p.
void finish(Judgement& judgement, bool is_certain) {
  const double reached = judgement.figure == "time" ? judgement.change.high : judgement.change.ratio;
  judgement.is_worse = is_certain && judgement.change.ratio > 1 && reached >= 1 + judgement.allowed;
  judgement.text = place_of(judgement) + judgement.figure + " " + percent_text(judgement.change.ratio) + " (" +
                   percent_text(judgement.change.low) + " to " + percent_text(judgement.change.high) +
                   (judgement.change.interval == interval_of_95 ? "" : ", " + judgement.change.interval) +
                   "), allowed +" + output::fixed(100 * judgement.allowed, 1) + " %";
}

/// The ratios of the rounds. For one thread they are ratios of processor time, which other programs on the machine
/// hardly change. For several threads they are ratios of wall time, since threads also wait for each other.
std::vector<double> time_pairs(const Cell& cell) {
  const std::vector<std::uint64_t>&runs = cell.runs.cpu_ns, &reference = cell.reference_runs.cpu_ns;
  if (cell.trace.threads != 1 || runs.size() != cell.runs.wall_ns.size()) return time_samples(cell).pairs;
  std::vector<double> pairs;
  for (std::size_t i = 0; i < std::min(runs.size(), reference.size()); ++i) {
    if (runs[i] != 0 && reference[i] != 0)
      pairs.push_back(static_cast<double>(runs[i]) / static_cast<double>(reference[i]));
  }
  return pairs;
}

/// Judges by the logarithms of the ratios of pairs of runs.
void judge_pairs(Judgement& judgement, const std::vector<double>& logarithms) {
  const SignedRank test = signed_rank(logarithms);
  judgement.p = test.p;
  judgement.runs = logarithms.size();
  judgement.least_p = std::exp2(-static_cast<double>(judgement.runs));
  judgement.change = {
      std::exp(test.middle), std::exp(test.low), std::exp(test.high),
      judgement.runs < runs_for_95 ? "range of " + output::counted(judgement.runs, "run") : interval_of_95};
}

std::vector<double> logarithms_of(const std::vector<double>& ratios) {
  std::vector<double> logarithms;
  for (const double ratio : ratios) logarithms.push_back(std::log(ratio));
  return logarithms;
}

RatioSamples memory_of(const Cell& cell, const std::string& figure) {
  if (figure == "fragmentation") return fragmentation_samples(cell);
  return memory_samples(cell, figure == "peak" ? &MemoryFigures::peak : &MemoryFigures::mean);
}

/// Judges by the ranks of all runs among those of the old build.
void judge_ranges(Judgement& judgement, const RatioSamples& samples) {
  judgement.change = range_ratio(samples);
  judgement.p = rank_sum_p(samples.runs, samples.reference);
  judgement.runs = samples.runs.size();
  judgement.least_p = least_rank_sum_p(samples.runs.size(), samples.reference.size());
}

/// Judges a cell without figures: the new build died or refused calls, or the trace was not replayed.
void judge_end(std::vector<Judgement>& judgements, const Cell& cell) {
  const Judgement run = judgement_of(cell, "run", 0);
  if (cell.outcome == outcomes::not_replayed || cell.outcome == outcomes::measured) {
    judgements.push_back(not_judged(run, cell.reason.value_or("has no timed run")));
    return;
  }
  Judgement& judgement = judgements.emplace_back(run);
  judgement.p = 0;
  judgement.is_worse = judgement.is_certain = true;
  judgement.text = place_of(judgement) + text::to_line(cell.outcome + " " + cell.reason.value_or(""));
}

/// Judges times for each trace, and for all: a small change on each trace may be certain over all of them.
void judge_times(std::vector<Judgement>& judgements, const std::vector<Cell>& cells, double allowed) {
  std::vector<std::string> allocators;
  for (const Cell& cell : cells) {
    if (std::find(allocators.begin(), allocators.end(), cell.allocator.name) == allocators.end())
      allocators.push_back(cell.allocator.name);
  }
  for (const std::string& allocator : allocators) {
    std::vector<double> all;
    std::size_t traces = 0;
    for (const Cell& cell : cells) {
      const std::vector<double> pairs = time_pairs(cell);
      if (cell.allocator.name != allocator) continue;
      const std::vector<double> logarithms = logarithms_of(pairs);
      Judgement& judgement = judgements.emplace_back(judgement_of(cell, "time", allowed));
      if (pairs.empty()) {
        judgement = not_judged(judgement, "there is no round in which both ran");
        continue;
      }
      judge_pairs(judgement, logarithms);
      all.insert(all.end(), logarithms.begin(), logarithms.end());
      ++traces;
    }
    if (traces < 2) continue;
    Judgement& whole = judgements.emplace_back(
        Judgement{.trace = all_traces, .allocator = allocator, .figure = "time", .allowed = allowed});
    judge_pairs(whole, all);
  }
}

/// Why a cell cannot be judged by an old one; empty if it can.
std::string baseline_fault(const Cell& cell, const Cell& old) {
  if (!old.is_measured()) return "the baseline's " + old.outcome + " " + old.reason.value_or("");
  if (old.mode != cell.mode) return "the baseline was replayed with other options (as --touch, --clock or --order)";
  if (old.reference.name != cell.reference.name)
    return "the baseline's reference is " + old.reference.name + ", and not " + cell.reference.name;
  return "";
}

/// The cell of the baseline for the same trace and allocator, of whatever build. Returns null if there is none, or if
/// there are several builds; `fault` then says why.
const Cell* counterpart(const Cell& cell, const std::vector<Cell>& baseline, std::string& fault) {
  fault = "the baseline does not have it";
  const Cell* found = nullptr;
  for (const Cell& old : baseline) {
    if (old.trace.sha256 != cell.trace.sha256 || old.allocator.name != cell.allocator.name) continue;
    const std::string why = baseline_fault(cell, old);
    if (!found) fault = why;
    if (!why.empty()) continue;
    if (found && found->allocator.sha256 != old.allocator.sha256) {
      fault = "the baseline has several builds of this name";
      return nullptr;
    }
    if (!found) found = &old;
    fault.clear();
  }
  return found;
}

/// Why times of two boards cannot be compared; empty if they can.
std::string time_fault(const Cell& cell, const Cell& old) {
  if (cell.machine.cpu != old.machine.cpu)
    return "the baseline was measured on " + old.machine.cpu.value_or("an unknown processor") + ", and now on " +
           cell.machine.cpu.value_or("an unknown one");
  if (cell.reference.sha256 != old.reference.sha256)
    return "the baseline was measured with another build of " + old.reference.name;
  return "";
}

/// Whether two ranges do not meet, and are farther apart than each is wide.
bool are_apart(const RatioSamples& samples) {
  const auto [least, most] = std::minmax_element(samples.runs.begin(), samples.runs.end());
  const auto [old_least, old_most] = std::minmax_element(samples.reference.begin(), samples.reference.end());
  const double gap = *least - *old_most;
  return gap > 0 && gap > std::max(*most - *least, *old_most - *old_least);
}

void judge_old_memory(std::vector<Judgement>& judgements, const Cell& cell, const Cell& old, const Limit& limit) {
  RatioSamples samples = memory_of(cell, limit.figure);
  samples.reference = memory_of(old, limit.figure).runs;
  Judgement& judgement = judgements.emplace_back(judgement_of(cell, limit.figure, limit.share));
  const bool is_other_mean = limit.figure == "mean" && cell.series.times.has_value() != old.series.times.has_value();
  if (!samples.is_known() || is_other_mean) {
    judgement = not_judged(
        judgement, is_other_mean ? "the baseline's mean was taken by events, in an older version: measure it anew"
                                 : "not measured");
    return;
  }
  judge_ranges(judgement, samples);
  finish(judgement, are_apart(samples));
  judgement.is_certain = judgement.p <= gate_error;
  if (judgement.is_worse && !judgement.is_certain)
    judgement.text += ", not certain of " + output::counted(samples.runs.size(), "run") + " and " +
                      std::to_string(samples.reference.size()) + " of the baseline";
}

/// Judges time by the ratios to libc of both boards. No interval covers the drift from day to day, so the whole
/// interval has to be beyond the share that is allowed.
void judge_old_time(std::vector<Judgement>& judgements, const Cell& cell, const Cell& old, double allowed) {
  RatioSamples samples{.runs = time_pairs(cell), .reference = time_pairs(old)};
  Judgement& judgement = judgements.emplace_back(judgement_of(cell, "time", allowed));
  const std::string fault = time_fault(cell, old);
  if (!fault.empty() || !samples.is_known()) {
    judgement = not_judged(judgement, fault.empty() ? "not measured" : fault);
    return;
  }
  judge_ranges(judgement, samples);
  judgement.change = ratio_of(samples);
  judgement.is_certain = judgement.p <= gate_error;
  finish(judgement, judgement.is_certain && judgement.change.low >= 1 + allowed);
  if (judgement.least_p > gate_error)
    judgement =
        not_judged(judgement, output::counted(samples.runs.size(), "round") + " and " +
                                  std::to_string(samples.reference.size()) + " of the baseline, needs 5 of each");
}

/// Decides which figures are worse with certainty. A figure with too few runs for that counts as not judged.
void finish_all(std::vector<Judgement>& judgements) {
  std::vector<Judgement*> figures;
  std::vector<double> p;
  for (Judgement& judgement : judgements) {
    if (!judgement.is_judged) continue;
    figures.push_back(&judgement);
    p.push_back(judgement.p);
  }
  const std::vector<bool> certain = rejected(p, gate_error);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    Judgement& judgement = *figures[i];
    finish(judgement, certain[i]);
    judgement.is_certain = certain[i];
    if (certain[i] || judgement.least_p <= gate_error / static_cast<double>(p.size())) continue;
    const bool is_time = judgement.figure == "time";
    const bool looks_worse = judgement.change.low > 1 && judgement.change.ratio >= 1 + judgement.allowed;
    if (is_time)
      judgement = not_judged(
          judgement, output::counted(judgement.runs, "round") + ", needs " + std::to_string(rounds_needed(p.size())));
    else if (looks_worse)
      judgement = not_judged(judgement, output::counted(judgement.runs, "memory run") + " are too few for " +
                                            output::counted(p.size(), "figure"));
  }
}

}  // namespace

std::size_t figure_count(std::size_t traces, std::size_t allocators, const std::vector<Limit>& limits) {
  const bool has_time =
      std::any_of(limits.begin(), limits.end(), [](const Limit& limit) { return limit.figure == "time"; });
  return traces * allocators * limits.size() + (has_time && traces > 1 ? allocators : 0);
}

unsigned rounds_needed(std::size_t figures) {
  return static_cast<unsigned>(std::ceil(std::log2(static_cast<double>(figures) / gate_error)));
}

std::vector<Judgement> judge_against(const std::vector<Cell>& cells, const std::vector<Limit>& limits) {
  std::vector<Judgement> judgements, ends;
  std::vector<Cell> measured;
  for (const Cell& cell : cells) {
    if (cell.reference_fault)
      ends.push_back(not_judged(judgement_of(cell, "run", 0), "the old build " + *cell.reference_fault));
    else if (cell.is_measured())
      measured.push_back(cell);
    else
      judge_end(ends, cell);
  }
  for (const Limit& limit : limits) {
    if (limit.figure == "time") {
      judge_times(judgements, measured, limit.share);
      continue;
    }
    for (const Cell& cell : measured) {
      const RatioSamples samples = memory_of(cell, limit.figure);
      Judgement& judgement = judgements.emplace_back(judgement_of(cell, limit.figure, limit.share));
      if (samples.is_known())
        judge_ranges(judgement, samples);
      else
        judgement = not_judged(judgement, "not measured");
    }
  }
  finish_all(judgements);
  judgements.insert(judgements.end(), ends.begin(), ends.end());
  return judgements;
}

std::vector<Judgement> judge_baseline(const std::vector<Cell>& cells, const std::vector<Cell>& baseline,
                                      const std::vector<Limit>& limits, std::vector<std::string>& remarks) {
  std::vector<Judgement> judgements;
  bool has_time = false;
  for (const Cell& cell : cells) {
    std::string fault;
    const Cell* const old = counterpart(cell, baseline, fault);
    if (!old) {
      judgements.push_back(not_judged(judgement_of(cell, "run", 0), fault));
      continue;
    }
    if (!cell.is_measured()) {
      judge_end(judgements, cell);
      continue;
    }
    for (const Limit& limit : limits) {
      if (limit.figure != "time") {
        judge_old_memory(judgements, cell, *old, limit);
        continue;
      }
      judge_old_time(judgements, cell, *old, limit.share);
      has_time = has_time || judgements.back().is_judged;
    }
  }
  if (has_time)
    remarks.push_back("time is judged by its ratio to " + cells.front().reference.name +
                      ", since the baseline was measured apart; --against=OLD.so is sharper");
  return judgements;
}

std::vector<std::string> gate_lines(const std::vector<Judgement>& judgements) {
  std::vector<std::string> lines;
  for (const Judgement& judgement : judgements) {
    if (judgement.is_worse) lines.push_back("worse: " + judgement.text);
    if (!judgement.is_judged) lines.push_back("not judged: " + judgement.text);
  }
  return lines;
}

std::string gate_text(const std::vector<Judgement>& judgements) {
  std::string text;
  for (const std::string& line : gate_lines(judgements)) text += line + "\n";
  const auto count = [&judgements](bool Judgement::*is) {
    return static_cast<std::uint64_t>(
        std::count_if(judgements.begin(), judgements.end(), [is](const Judgement& each) { return each.*is; }));
  };
  const std::uint64_t judged = count(&Judgement::is_judged), worse = count(&Judgement::is_worse);
  text += output::counted(judged, "figure") + " judged: ";
  text += worse == 0 ? "none is worse with certainty" : output::with_commas(worse) + " worse";
  if (judged != judgements.size()) text += "; " + std::to_string(judgements.size() - judged) + " could not be judged";
  return text + "\n";
}

std::string gate_csv(const std::vector<Judgement>& judgements) {
  std::string text = output::csv_titles<GateRow>();
  for (const Judgement& judgement : judgements) text += output::csv_row(GateRow{judgement});
  return text;
}

}  // namespace cmt::replay
