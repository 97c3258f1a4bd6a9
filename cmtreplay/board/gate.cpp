#include "cmtreplay/board/gate.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "cmtreplay/board/rank_tests.h"
#include "toolkit/output/numbers.h"

namespace cmt::replay {
namespace {

using command::Limit;

/// The name of the judgement of all traces together.
constexpr const char* all_traces = "all traces";

std::string percent_text(double ratio) {
  const double change = 100 * (ratio - 1);
  return (change < 0 ? "" : "+") + output::fixed(change, std::abs(change) < 9.95 ? 1 : 0) + " %";
}

Judgement judgement_of(const Cell& cell, const std::string& figure, double allowed) {
  return {.trace = cell.trace.name, .allocator = cell.allocator.name, .figure = figure, .allowed = allowed};
}

/// Whether it is worse can only be said when all p are known: the caller does that.
void finish(Judgement& judgement, bool is_certain) {
  const double reached = judgement.figure == "time" ? judgement.change.high : judgement.change.ratio;
  judgement.is_worse = is_certain && judgement.change.ratio > 1 && reached >= 1 + judgement.allowed;
  judgement.text = judgement.trace + ": " + judgement.allocator + ": " + judgement.figure + " " +
                   percent_text(judgement.change.ratio) + " (" + percent_text(judgement.change.low) + " to " +
                   percent_text(judgement.change.high) + "), allowed +" + output::fixed(100 * judgement.allowed, 1) +
                   " %";
}

/// The ratios of the rounds. Of one thread they are of processor time, which others on the machine hardly change; of
/// several threads of wall time, since waiting for each other is a part of it.
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

/// From the logarithms of the ratios of pairs of runs.
void judge_pairs(Judgement& judgement, const std::vector<double>& logarithms) {
  const SignedRank test = signed_rank(logarithms);
  judgement.p = test.p;
  judgement.change = {std::exp(test.middle), std::exp(test.low), std::exp(test.high)};
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

/// The ratio of the medians, and of the ranges' ends.
Ratio range_ratio(const RatioSamples& samples) {
  const auto [least, most] = std::minmax_element(samples.runs.begin(), samples.runs.end());
  const auto [old_least, old_most] = std::minmax_element(samples.reference.begin(), samples.reference.end());
  std::vector<double> runs = samples.runs, reference = samples.reference;
  return {median_of(runs) / median_of(reference), *least / *old_most, *most / *old_least};
}

/// A build that no longer ends where the old one did.
void judge_ends(std::vector<Judgement>& judgements, const Cell& cell) {
  if (cell.outcome == outcomes::measured || cell.outcome == outcomes::not_replayed) return;
  if (cell.reference_runs.wall_ns.empty()) return;  // the old one ended as badly
  Judgement& judgement = judgements.emplace_back(judgement_of(cell, "run", 0));
  judgement.p = 0;
  judgement.is_worse = true;
  judgement.text = cell.trace.name + ": " + cell.allocator.name + ": " + cell.outcome + " " + cell.reason.value_or("");
}

/// Judges times of each trace, and of all: a little on each trace may be certain on all together.
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
      if (cell.allocator.name != allocator || !cell.is_measured() || pairs.empty()) continue;
      const std::vector<double> logarithms = logarithms_of(pairs);
      judge_pairs(judgements.emplace_back(judgement_of(cell, "time", allowed)), logarithms);
      all.insert(all.end(), logarithms.begin(), logarithms.end());
      ++traces;
    }
    if (traces < 2) continue;
    Judgement& whole = judgements.emplace_back(
        Judgement{.trace = all_traces, .allocator = allocator, .figure = "time", .allowed = allowed});
    judge_pairs(whole, all);
  }
}

/// The cell of a board for the same trace and allocator, of whatever build; null where there is none.
const Cell* counterpart(const Cell& cell, const std::vector<Cell>& baseline) {
  const auto found = std::find_if(baseline.begin(), baseline.end(), [&cell](const Cell& old) {
    return old.trace.sha256 == cell.trace.sha256 && old.allocator.name == cell.allocator.name && old.is_measured();
  });
  return found == baseline.end() ? nullptr : &*found;
}

/// Why times of two boards cannot be compared; empty where they can.
std::string time_fault(const Cell& cell, const Cell& old) {
  if (cell.machine.cpu != old.machine.cpu)
    return "measured on " + old.machine.cpu.value_or("an unknown processor") + ", and now on " +
           cell.machine.cpu.value_or("an unknown one");
  if (cell.reference.sha256 != old.reference.sha256) return "measured with another build of " + old.reference.name;
  return "";
}

/// Ranges that do not meet, and are farther apart than each is wide.
bool are_apart(const RatioSamples& samples) {
  const auto [least, most] = std::minmax_element(samples.runs.begin(), samples.runs.end());
  const auto [old_least, old_most] = std::minmax_element(samples.reference.begin(), samples.reference.end());
  const double gap = *least - *old_most;
  return gap > 0 && gap > std::max(*most - *least, *old_most - *old_least);
}

void judge_old_memory(std::vector<Judgement>& judgements, const Cell& cell, const Cell& old, const Limit& limit) {
  RatioSamples samples = memory_of(cell, limit.figure);
  samples.reference = memory_of(old, limit.figure).runs;
  if (!samples.is_known()) return;
  Judgement& judgement = judgements.emplace_back(judgement_of(cell, limit.figure, limit.share));
  judgement.change = range_ratio(samples);
  judgement.p = rank_sum_p(samples.runs, samples.reference);
  finish(judgement, are_apart(samples));
}

/// By the ratios to libc of both days. Their drift from day to day is in no interval, so all of it has to be beyond the
/// share that is allowed.
void judge_old_time(std::vector<Judgement>& judgements, const Cell& cell, const Cell& old, double allowed) {
  RatioSamples samples{.runs = time_pairs(cell), .reference = time_pairs(old)};
  if (!samples.is_known()) return;
  Judgement& judgement = judgements.emplace_back(judgement_of(cell, "time", allowed));
  judgement.change = ratio_of(samples);
  judgement.p = rank_sum_p(samples.runs, samples.reference);
  finish(judgement, judgement.p <= gate_error && judgement.change.low >= 1 + allowed);
}

}  // namespace

std::vector<Judgement> judge_against(const std::vector<Cell>& cells, const std::vector<Limit>& limits) {
  std::vector<Judgement> judgements;
  for (const Limit& limit : limits) {
    if (limit.figure == "time") judge_times(judgements, cells, limit.share);
    for (const Cell& cell : cells) {
      if (limit.figure == "time" || !cell.is_measured()) continue;
      const RatioSamples samples = memory_of(cell, limit.figure);
      if (!samples.is_known()) continue;
      Judgement& judgement = judgements.emplace_back(judgement_of(cell, limit.figure, limit.share));
      judgement.change = range_ratio(samples);
      judgement.p = rank_sum_p(samples.runs, samples.reference);
    }
  }
  std::vector<double> p;
  for (const Judgement& judgement : judgements) p.push_back(judgement.p);
  const std::vector<bool> certain = rejected(p, gate_error);
  for (std::size_t i = 0; i < judgements.size(); ++i) finish(judgements[i], certain[i]);
  for (const Cell& cell : cells) judge_ends(judgements, cell);
  return judgements;
}

std::vector<Judgement> judge_baseline(const std::vector<Cell>& cells, const std::vector<Cell>& baseline,
                                      const std::vector<Limit>& limits, std::vector<std::string>& remarks) {
  std::vector<Judgement> judgements;
  const auto remark = [&remarks](const std::string& text) {
    if (std::find(remarks.begin(), remarks.end(), text) == remarks.end()) remarks.push_back(text);
  };
  for (const Cell& cell : cells) {
    const Cell* const old = counterpart(cell, baseline);
    const std::string where = cell.trace.name + ": " + cell.allocator.name + ": ";
    if (!old) {
      remark(where + "the baseline does not have it: not judged");
      continue;
    }
    judge_ends(judgements, cell);
    if (!cell.is_measured()) continue;
    for (const Limit& limit : limits) {
      if (limit.figure != "time") {
        judge_old_memory(judgements, cell, *old, limit);
      } else if (const std::string fault = time_fault(cell, *old); fault.empty()) {
        remark("time is judged by its ratio to " + cell.reference.name +
               ", since the baseline is of another day; --against=OLD.so is sharper");
        judge_old_time(judgements, cell, *old, limit.share);
      } else {
        remark("time is not judged: the baseline was " + fault);
      }
    }
  }
  return judgements;
}

std::string gate_text(const std::vector<Judgement>& judgements) {
  std::string text;
  std::uint64_t worse = 0;
  for (const Judgement& judgement : judgements) {
    if (!judgement.is_worse) continue;
    text += "worse: " + judgement.text + "\n";
    ++worse;
  }
  text += output::counted(judgements.size(), "figure") + " judged: ";
  return text + (worse == 0 ? "none is worse with certainty\n" : output::with_commas(worse) + " worse\n");
}

}  // namespace cmt::replay
