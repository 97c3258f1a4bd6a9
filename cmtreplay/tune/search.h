/// Searches settings by successive halving: many candidates with few runs first, then the best of them with more runs.
///
///     1. the allocators without settings           few runs
///     2. each with one setting                      few runs
///     3. each with two of the settings that helped,
///        with all that helped, and with pairs of
///        which one exceeds a limit and the other
///        may repair that                            few runs
///     4. the best 12                                4 runs
///     5. the best 6                                 12 runs: enough for intervals of 95 %
///
/// Where the time of a replay varies between rounds, so few runs say little. Then stages 1 and 2 are repeated with more
/// runs, and the others have more too, as far as the budget pays for them.
///
/// A budget that does not pay for all of them cuts stages 2 and 3 short, and makes 4 and 5 smaller. The last stage has
/// at least three candidates, so that there are always intervals.
///
/// "Best" is by each aim in turn. All figures are ratios to the default, which is measured in the same rounds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cmtreplay/board/ratios.h"
#include "cmtreplay/tune/settings.h"

namespace cmt::replay {

/// The aims of a search. Each has its recommendation.
enum class Aim {
  memory,  ///< the least peak within 2 % of the default's time
  time,    ///< the least time within 5 % of the default's peak
  both     ///< the least product of the two, within 5 % of the default's peak and 7.1 % of its time
};

inline constexpr double time_allowed = 1.02, peak_allowed = 1.05;

/// A candidate's figures, as ratios to the default's: geometric means over the traces.
struct Measured {
  Candidate candidate = {};
  unsigned runs = 0;
  Ratio time = {}, peak = {}, mean = {};
  double time_deviation = Ratio::none;  ///< of one round's ratio of times: see log_deviation()
  std::string state = {};               ///< why it was not measured: it crashed or refused calls; empty: it was

  bool is_measured() const { return state.empty() && time.is_known() && peak.is_known(); }
};

/// How far a candidate is from the best for an aim; less is better. Candidates come in three groups: within what the
/// aim allows, beyond it by no more than chance, and farther beyond it. With fewer than 4 runs the second group counts
/// as the first.
double score(Aim aim, const Measured& measured);

/// The best `count` candidates: of each aim in turn the best one that is not taken yet.
std::vector<Candidate> best_of(const std::vector<Measured>& all, const std::vector<Aim>& aims, std::size_t count);

/// The standard deviation of one round's ratio of times, from many candidates. It is the median of theirs, which a few
/// disturbed rounds do not change. 0 if no candidate has two runs.
double time_deviation(const std::vector<Measured>& all);

/// The candidates with two of the choices that helped their allocator, and with all of them together. In further pairs
/// one choice exceeds a limit and the other may repair that. The most promising come first: those whose parts helped
/// most.
std::vector<Candidate> combinations(const std::vector<Measured>& defaults, const std::vector<Measured>& singles,
                                    const std::vector<Aim>& aims);

/// Measures candidates for a search.
class Meter {
 public:
  virtual ~Meter() = default;
  /// Measures candidates with so many runs, in the order given. It stops once that share of the budget is spent, and
  /// then returns those that are done. With a share of 1 it measures all. Throws Interrupted.
  virtual std::vector<Measured> measure(const std::string& stage, const std::vector<Candidate>& candidates,
                                        unsigned runs, double share) = 0;
  /// How many candidates with so many runs a share of the budget pays for, less what is spent.
  virtual std::size_t affordable(unsigned runs, double share) = 0;
  /// The candidates with one setting of an allocator. It is called after the first stage.
  virtual std::vector<Candidate> singles_of(const Candidate& plain) = 0;
};

struct SearchResult {
  std::vector<Measured> all = {};  ///< each candidate by its most runs
  std::size_t asked = 0;           ///< candidates that the search wanted to try
  std::size_t finalists = 0;       ///< the last of `all`, which were in the last stage
  double time_deviation = 0;       ///< of one round's ratio of times, by all candidates with one setting; 0: not known
};

/// `allocators`: without settings, the default first.
SearchResult search(const std::vector<Candidate>& allocators, const std::vector<Aim>& aims, Meter& meter);

}  // namespace cmt::replay
