// Computes the tests of rank_tests.h: exactly for few samples, by the normal distribution for many.
#include "cmtreplay/board/rank_tests.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cmt::replay {
namespace {

constexpr std::size_t exact_max = 50;

/// The probability that a number of the normal distribution is at least `z`.
double normal_tail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

/// The ranks of numbers by their absolute values, from 1. Equal numbers get the mean of their ranks.
std::vector<double> absolute_ranks(const std::vector<double>& numbers) {
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return std::abs(numbers[a]) < std::abs(numbers[b]); });
  std::vector<double> ranks(numbers.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && std::abs(numbers[order[end]]) == std::abs(numbers[order[i]])) ++end;
    for (std::size_t k = i; k < end; ++k) ranks[order[k]] = (static_cast<double>(i + end) + 1) / 2;
    i = end;
  }
  return ranks;
}

/// The probability of each sum of ranks, if each rank from 1 to n is in the sum with a probability of 1/2.
std::vector<double> rank_sum_distribution(std::size_t n) {
  std::vector<double> shares{1};
  for (std::size_t rank = 1; rank <= n; ++rank) {
    std::vector<double> next(shares.size() + rank);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      next[i] += shares[i] / 2;
      next[i + rank] += shares[i] / 2;
    }
    shares = std::move(next);
  }
  return shares;
}

double signed_rank_p(double sum, std::size_t n) {
  if (n == 0) return 1;
  if (n <= exact_max) {
    const std::vector<double> shares = rank_sum_distribution(n);
    // Half a rank of ties is rounded down, so that the probability is never too small.
    return std::accumulate(shares.begin() + static_cast<std::ptrdiff_t>(std::floor(sum)), shares.end(), 0.0);
  }
  const double count = static_cast<double>(n);
  const double mean = count * (count + 1) / 4, deviation = std::sqrt(count * (count + 1) * (2 * count + 1) / 24);
  return normal_tail((sum - mean - 0.5) / deviation);
}

}  // namespace

SignedRank signed_rank(const std::vector<double>& differences) {
  SignedRank result;
  std::vector<double> numbers = differences;
  std::erase(numbers, 0.0);
  const std::vector<double> ranks = absolute_ranks(numbers);
  double sum = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) sum += numbers[i] > 0 ? ranks[i] : 0;
  result.p = signed_rank_p(sum, numbers.size());
  if (differences.empty()) return result;
  std::vector<double> means;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    for (std::size_t k = i; k < differences.size(); ++k) means.push_back((differences[i] + differences[k]) / 2);
  }
  std::sort(means.begin(), means.end());
  const double count = static_cast<double>(differences.size());
  const double center = static_cast<double>(means.size()) / 2;
  const double width = 1.96 * std::sqrt(count * (count + 1) * (2 * count + 1) / 24);
  const auto at = [&](double index) {
    return means[static_cast<std::size_t>(std::clamp(index, 0.0, static_cast<double>(means.size() - 1)))];
  };
  result.middle = (at(std::floor((2 * center - 1) / 2)) + at(std::floor(center))) / 2;
  result.low = at(std::floor(center - width));
  result.high = at(std::ceil(center + width));
  return result;
}

double rank_sum_p(const std::vector<double>& samples, const std::vector<double>& others) {
  if (samples.empty() || others.empty()) return 1;
  const double n = static_cast<double>(samples.size()), m = static_cast<double>(others.size());
  double above = 0;  // pairs in which the sample is larger than the other
  for (const double sample : samples) {
    for (const double other : others) above += sample > other ? 1 : sample == other ? 0.5 : 0;
  }
  if (above == n * m) return least_rank_sum_p(samples.size(), others.size());
  return normal_tail((above - n * m / 2 - 0.5) / std::sqrt(n * m * (n + m + 1) / 12));
}

double least_rank_sum_p(std::size_t samples, std::size_t others) {
  const double n = static_cast<double>(samples), m = static_cast<double>(others);
  return std::exp(std::lgamma(n + 1) + std::lgamma(m + 1) - std::lgamma(n + m + 1));
}

std::vector<bool> rejected(const std::vector<double>& p, double error) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<bool> result(p.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (p[order[i]] > error / static_cast<double>(p.size() - i)) break;
    result[order[i]] = true;
  }
  return result;
}

}  // namespace cmt::replay
