// Computes intervals by bootstrap and by the binomial distribution, and percentiles from buckets of latencies.
#include "cmtreplay/run/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace cmt::replay {

Spread spread_of(std::vector<std::uint64_t> samples) {
  if (samples.empty()) return {};
  std::vector<std::uint64_t> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  const auto at = [&sorted](std::size_t i) { return static_cast<double>(sorted[i]); };
  return {.median = sorted.size() % 2 == 1 ? at(half) : (at(half - 1) + at(half)) / 2,
          .min = at(0),
          .max = at(sorted.size() - 1),
          .samples = std::move(samples)};
}

double median_of(std::vector<double>& samples) {
  assert(!samples.empty());
  const auto half = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), half, samples.end());
  if (samples.size() % 2 == 1) return *half;
  return (*half + *std::max_element(samples.begin(), half)) / 2;
}

Interval bootstrap_median(const std::vector<std::uint64_t>& samples) {
  assert(!samples.empty());
  constexpr std::size_t draws = 2000, tail = draws / 40;  // 2.5 %
  std::mt19937 random(1);
  std::vector<double> drawn(samples.size()), medians(draws);
  for (double& median : medians) {
    for (double& sample : drawn) sample = static_cast<double>(samples[random() % samples.size()]);
    median = median_of(drawn);
  }
  std::sort(medians.begin(), medians.end());
  return {medians[tail], medians[draws - 1 - tail]};
}

std::optional<Interval> median_interval(std::vector<double> samples, double confidence) {
  assert(confidence > 0 && confidence < 1);
  const std::size_t count = samples.size();
  double term = std::pow(0.5, static_cast<double>(count));  // the probability that `below` samples are below the median
  double tail = 0;
  std::size_t below = 0;
  while (below < count / 2 && 2 * (tail + term) <= 1 - confidence) {
    tail += term;
    ++below;
    term *= static_cast<double>(count - below + 1) / static_cast<double>(below);
  }
  if (below == 0) return std::nullopt;
  assert(below <= count / 2);
  std::sort(samples.begin(), samples.end());
  return Interval{samples[below - 1], samples[count - below]};
}

std::size_t count_outliers(const std::vector<std::uint64_t>& samples) {
  if (samples.empty()) return 0;
  constexpr double far = 3.5 / 0.6745;
  const double median = spread_of(samples).median;
  std::vector<double> distances;
  for (const std::uint64_t sample : samples) distances.push_back(std::abs(static_cast<double>(sample) - median));
  std::vector<double> ordered = distances;
  const double usual = median_of(ordered);
  return static_cast<std::size_t>(
      std::count_if(distances.begin(), distances.end(), [&](double distance) { return distance > far * usual; }));
}

void LatencyCounts::add(const ControlRegion& results) {
  const control& whole = results.get();
  for (const latencies& lane : results.all_latencies()) {
    for (std::size_t kind = 0; kind < latency_kinds; ++kind) {
      for (std::size_t bucket = 0; bucket < latency_buckets; ++bucket)
        counts_[kind][bucket] += lane.counts[kind][bucket];
      max_ticks_[kind] = std::max(max_ticks_[kind], lane.max[kind]);
    }
  }
  empty_ticks_ = std::min(empty_ticks_, whole.empty_ticks);
  if (whole.clock_ticks != 0)
    ns_per_tick_ = static_cast<double>(whole.wall_ns) / static_cast<double>(whole.clock_ticks);
}

std::uint64_t LatencyCounts::samples() const {
  std::uint64_t all = 0;
  for (const Counts& counts : counts_) all = std::accumulate(counts.begin(), counts.end(), all);
  return all;
}

double LatencyCounts::nanoseconds(double ticks) const {
  return std::max(ticks - static_cast<double>(empty_ticks_), 0.0) * ns_per_tick_;
}

/// The ticks of the sample that has `rank` smaller samples.
double LatencyCounts::quantile_ticks(const Counts& counts, std::uint64_t rank) const {
  std::uint64_t below = 0;
  for (std::uint32_t bucket = 0; bucket < latency_buckets; ++bucket) {
    below += counts[bucket];
    if (below > rank) return latency_ticks(bucket);
  }
  assert(!"a rank is below the number of samples");
  return 0;
}

LatencySummary LatencyCounts::summary(latency_kind kind) const {
  const Counts& counts = counts_[kind];
  LatencySummary summary{.samples = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0})};
  if (summary.samples == 0) return summary;
  summary.max = nanoseconds(static_cast<double>(max_ticks_[kind]));
  const auto at = [&](double part) {
    const double rank = std::ceil(part * static_cast<double>(summary.samples)) - 1;
    return std::min(nanoseconds(quantile_ticks(counts, static_cast<std::uint64_t>(std::max(rank, 0.0)))), summary.max);
  };
  summary.p50 = at(0.5);
  summary.p90 = at(0.9);
  summary.p99 = at(0.99);
  summary.p999 = at(0.999);
  return summary;
}

std::vector<LatencyCounts::TailPoint> LatencyCounts::tail(latency_kind kind) const {
  const Counts& counts = counts_[kind];
  const std::uint64_t all = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (all == 0) return {};
  std::vector<TailPoint> points;
  const double max = nanoseconds(static_cast<double>(max_ticks_[kind]));
  std::uint64_t left = all;  // samples of this bucket and of longer ones
  for (std::uint32_t bucket = 0; bucket < latency_buckets; ++bucket) {
    if (counts[bucket] == 0) continue;
    points.push_back(
        {static_cast<double>(all) / static_cast<double>(left), std::min(nanoseconds(latency_ticks(bucket)), max)});
    left -= counts[bucket];
  }
  assert(left == 0 && !points.empty());
  // The longest call is known exactly, not only by its bucket.
  if (points.back().one_in < static_cast<double>(all)) points.push_back({static_cast<double>(all), max});
  points.back().ns = max;
  return points;
}

}  // namespace cmt::replay
