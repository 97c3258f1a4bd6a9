/// Tests by ranks, for the gate: they hold for any distribution of the noise.
#pragma once

#include <cstddef>
#include <vector>

namespace cmt::replay {

/// A test of whether differences are above 0. It assumes only that they are symmetric around 0 if nothing has changed.
/// The logarithms of the ratios of paired runs are, since each of the two runs is first equally often.
struct SignedRank {
  double p = 1;                          ///< the probability that chance gives ranks as high as these
  double middle = 0, low = 0, high = 0;  ///< the median of the means of all pairs, and 95 % around it
};

/// Wilcoxon's test (1945), one-sided, and the estimate of Hodges and Lehmann (1963). Exact for up to 50 differences.
SignedRank signed_rank(const std::vector<double>& differences);

/// The probability that chance puts samples as far above others as these: the test of Mann and Whitney (1947),
/// one-sided. It is exact if all samples are above all others, else by the normal distribution.
double rank_sum_p(const std::vector<double>& samples, const std::vector<double>& others);

/// The probability that all of so many samples are above all others by chance: rank_sum_p() is never smaller.
double least_rank_sum_p(std::size_t samples, std::size_t others);

/// Returns which of the hypotheses with these probabilities can be rejected. The probability that any of them is
/// rejected by chance is at most `error` (Holm, 1979).
std::vector<bool> rejected(const std::vector<double>& p, double error);

}  // namespace cmt::replay
