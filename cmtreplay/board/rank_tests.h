#pragma once

#include <cstddef>
#include <vector>

namespace cmt::replay {

/// Whether differences lie above 0, of any distribution that would be symmetric around 0 if nothing had changed: as the
/// logarithms of ratios of runs in pairs are, in which each of the two is as often the first.
struct SignedRank {
  double p = 1;                          ///< the probability of ranks as high as these by chance
  double middle = 0, low = 0, high = 0;  ///< the median of the means of all pairs, and 95 % around it
};

/// Wilcoxon's test (1945), one-sided, and the estimate of Hodges and Lehmann (1963). Exact for up to 50 differences.
SignedRank signed_rank(const std::vector<double>& differences);

/// Whether samples lie above others: the test of Mann and Whitney (1947), one-sided, exact where all lie above all,
/// else by the normal distribution.
double rank_sum_p(const std::vector<double>& samples, const std::vector<double>& others);

/// The probability that all of so many samples lie above all others: rank_sum_p has no smaller one.
double least_rank_sum_p(std::size_t samples, std::size_t others);

/// Which of the hypotheses with these probabilities can be rejected, so that with `error` at most one is by chance
/// (Holm, 1979).
std::vector<bool> rejected(const std::vector<double>& p, double error);

}  // namespace cmt::replay
