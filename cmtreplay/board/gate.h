/// The gate: judges with statistical certainty whether a build of an allocator is worse than another one.
#pragma once

#include <string>
#include <vector>

#include "cmtreplay/board/ratios.h"
#include "cmtreplay/matrix/cell.h"
#include "toolkit/command/limits.h"

namespace cmt::replay {

inline const std::vector<std::string> gate_figures{"time", "peak", "mean", "fragmentation"};

/// One figure that was judged, for one trace or for all together.
struct Judgement {
  std::string trace = {};  ///< or "all traces"
  std::string allocator = {};
  std::string figure = {};
  Ratio change = {};  ///< the new figure over the old one
  double p = 1;
  double allowed = 0;
  bool is_worse = false;
  bool is_certain = false;
  bool is_judged = true;
  std::string text = {};
  std::size_t runs = 0;  ///< rounds, or memory runs of the new build
  double least_p = 0;    ///< the smallest p that so many runs can have
};

template <class Visitor, output::DescribedAs<Judgement> J>
void describe(Visitor& field, J& judgement) {
  field("trace", judgement.trace, "its name, or: all traces");
  field("allocator", judgement.allocator, "");
  field("figure", judgement.figure, "time, peak, mean, fragmentation, or run: whether it ends at all");
  field("change", judgement.change, "the new figure over the old one");
  field("p", judgement.p, "the probability of such samples if nothing had changed");
  field("allowed", judgement.allowed, "the share of --fail-if");
  field("worse", judgement.is_worse,
        "whether it is worse, and perhaps by more than is allowed; with --against with certainty");
  field("certain", judgement.is_certain,
        "whether p is at most 0.005, with --against corrected for the number of figures");
  field("judged", judgement.is_judged, "false: could not be judged, text says why");
  field("text", judgement.text, "in words");
}

/// The probability that a gate raises any false alarm, over all its figures, if nothing has changed.
inline constexpr double gate_error = 0.005;

/// The number of figures that a gate judges.
std::size_t figure_count(std::size_t traces, std::size_t allocators, const std::vector<command::Limit>& limits);

/// The least number of rounds with which a figure can be certain among so many figures. The reason is that p is at
/// least 2^-n after n rounds.
unsigned rounds_needed(std::size_t figures);

/// Judges the cells of a new build against their references: the old build, which ran in the same rounds. A figure is
/// worse if both are true:
///
/// 1. Chance is an improbable reason for the difference (gate_error, corrected by Holm for the number of figures).
/// 2. The interval of the change reaches the share that is allowed.
///
/// A crash of the new build is worse, too. A figure that cannot be judged has a judgement that says why.
std::vector<Judgement> judge_against(const std::vector<Cell>& cells, const std::vector<command::Limit>& limits);

/// Judges cells against those of an earlier board. It judges memory by the ranges of the runs. It judges time by the
/// ratio to libc, and only if the processors are of one model and libc is the same. `remarks` gets a sentence on how it
/// judges.
std::vector<Judgement> judge_baseline(const std::vector<Cell>& cells, const std::vector<Cell>& baseline,
                                      const std::vector<command::Limit>& limits, std::vector<std::string>& remarks);

/// A line for each figure that is worse, or could not be judged.
std::vector<std::string> gate_lines(const std::vector<Judgement>& judgements);
/// The lines of gate_lines(), and a last one with the counts.
std::string gate_text(const std::vector<Judgement>& judgements);
/// One row for each judgement.
std::string gate_csv(const std::vector<Judgement>& judgements);

}  // namespace cmt::replay
