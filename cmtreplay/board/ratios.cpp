// Draws runs anew for the bootstrap, and takes ranges if there are too few runs for it.
#include "cmtreplay/board/ratios.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <random>

namespace cmt::replay {
namespace {

constexpr std::size_t draws = 2000, cut_off = draws / 40;  // 2.5 %

double median_of_drawn(const std::vector<double>& samples, std::mt19937& random, std::vector<double>& drawn) {
  assert(!samples.empty());
  drawn.resize(samples.size());
  for (double& sample : drawn) sample = samples[random() % samples.size()];
  return median_of(drawn);
}

double median(std::vector<double> samples) { return median_of(samples); }

double drawn_ratio(const RatioSamples& samples, std::mt19937& random, std::vector<double>& room) {
  if (!samples.pairs.empty()) return median_of_drawn(samples.pairs, random, room);
  const double above = median_of_drawn(samples.runs, random, room);
  return above / median_of_drawn(samples.reference, random, room);
}

double plain_ratio(const RatioSamples& samples) {
  if (!samples.pairs.empty()) return median(samples.pairs);
  return median(samples.runs) / median(samples.reference);
}

/// The number of runs that an interval is computed from: the smaller one of the two sides.
std::size_t run_count(const RatioSamples& samples) {
  return samples.pairs.empty() ? std::min(samples.runs.size(), samples.reference.size()) : samples.pairs.size();
}

std::string range_text(std::size_t runs) { return runs == 1 ? "1 run" : "range of " + std::to_string(runs) + " runs"; }

Interval range_of(const RatioSamples& samples) {
  if (!samples.pairs.empty()) {
    const auto [least, most] = std::minmax_element(samples.pairs.begin(), samples.pairs.end());
    return {*least, *most};
  }
  const auto [least, most] = std::minmax_element(samples.runs.begin(), samples.runs.end());
  const auto [old_least, old_most] = std::minmax_element(samples.reference.begin(), samples.reference.end());
  return {*least / *old_most, *most / *old_least};
}

std::size_t fewest_runs(const std::vector<RatioSamples>& cells) {
  std::size_t fewest = run_count(cells.front());
  for (const RatioSamples& samples : cells) fewest = std::min(fewest, run_count(samples));
  return fewest;
}

/// Whether the bootstrap's interval contains the true value with 95 %. By simulation with normal noise and with
/// Laplace's, the interval of two traces of five rounds each contains it in 95 to 98 % of cases.
bool is_enough_for_95(const std::vector<RatioSamples>& cells) {
  const auto is_in_pairs = [](const RatioSamples& samples) { return !samples.pairs.empty(); };
  const bool is_mean_of_pairs = cells.size() > 1 && std::all_of(cells.begin(), cells.end(), is_in_pairs);
  return fewest_runs(cells) >= (is_mean_of_pairs ? runs_for_95 - 1 : runs_for_95);
}

/// A figure of each memory run. Runs without it, which have 0 or NaN, are left out.
template <class Figure>
RatioSamples samples_of(const Cell& cell, Figure figure) {
  RatioSamples samples;
  const auto add = [&figure](std::vector<double>& list, const CellRuns& runs) {
    for (const MemoryFigures& run : runs.memory) {
      if (figure(run) > 0) list.push_back(figure(run));
    }
  };
  add(samples.runs, cell.runs);
  add(samples.reference, cell.reference_runs);
  return samples;
}

/// The geometric means of the ratios and of the ends of the ranges.
Ratio mean_of_ranges(const std::vector<RatioSamples>& cells) {
  double middle = 0, low = 0, high = 0;
  for (const RatioSamples& samples : cells) {
    const Interval range = range_of(samples);
    middle += std::log(plain_ratio(samples));
    low += std::log(range.low);
    high += std::log(range.high);
  }
  const double count = static_cast<double>(cells.size());
  return {std::exp(middle / count), std::exp(low / count), std::exp(high / count), range_text(fewest_runs(cells))};
}

}  // namespace

RatioSamples time_samples(const Cell& cell) {
  RatioSamples samples;
  const std::size_t rounds = std::min(cell.runs.wall_ns.size(), cell.reference_runs.wall_ns.size());
  for (std::size_t i = 0; i < rounds; ++i) {
    if (cell.reference_runs.wall_ns[i] != 0 && cell.runs.wall_ns[i] != 0)
      samples.pairs.push_back(static_cast<double>(cell.runs.wall_ns[i]) /
                              static_cast<double>(cell.reference_runs.wall_ns[i]));
  }
  return samples;
}

RatioSamples memory_samples(const Cell& cell, std::uint64_t MemoryFigures::*figure) {
  return samples_of(cell, [figure](const MemoryFigures& run) { return static_cast<double>(run.*figure); });
}

RatioSamples before_teardown_samples(const Cell& cell) {
  return samples_of(cell,
                    [](const MemoryFigures& run) { return static_cast<double>(run.before_teardown.value_or(0)); });
}

RatioSamples fragmentation_samples(const Cell& cell) {
  return samples_of(cell, [](const MemoryFigures& run) { return run.fragmentation; });
}

Ratio ratio_of(const RatioSamples& samples) { return geometric_mean({samples}); }

double log_deviation(const std::vector<RatioSamples>& cells) {
  double variance = 0;
  for (const RatioSamples& samples : cells) {
    const double count = static_cast<double>(samples.pairs.size());
    if (count < 2) return Ratio::none;
    double sum = 0, squares = 0;
    for (const double pair : samples.pairs) sum += std::log(pair);
    for (const double pair : samples.pairs) squares += std::pow(std::log(pair) - sum / count, 2);
    variance += squares / (count - 1);
  }
  return std::sqrt(variance) / static_cast<double>(cells.size());
}

Ratio range_ratio(const RatioSamples& samples) { return samples.is_known() ? mean_of_ranges({samples}) : Ratio{}; }

Ratio geometric_mean(const std::vector<RatioSamples>& cells) {
  const auto is_known = [](const RatioSamples& samples) { return samples.is_known(); };
  if (cells.empty() || !std::all_of(cells.begin(), cells.end(), is_known)) return {};
  if (!is_enough_for_95(cells)) return mean_of_ranges(cells);
  const double count = static_cast<double>(cells.size());
  double sum = 0;
  for (const RatioSamples& samples : cells) sum += std::log(plain_ratio(samples));
  std::mt19937 random(1);
  std::vector<double> means(draws), room;
  for (double& mean : means) {
    double drawn = 0;
    for (const RatioSamples& samples : cells) drawn += std::log(drawn_ratio(samples, random, room));
    mean = std::exp(drawn / count);
  }
  std::sort(means.begin(), means.end());
  return {std::exp(sum / count), means[cut_off], means[draws - 1 - cut_off], interval_of_95};
}

}  // namespace cmt::replay
