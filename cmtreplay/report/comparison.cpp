// Compares times by rounds and peaks by ranges, as comparison.h describes.
#include "cmtreplay/report/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"

namespace cmt::replay {
namespace {

double median_wall(const AllocatorResult& result) { return spread_of(result, &TimedSample::wall_ns).median; }

double median_peak(const AllocatorResult& result) {
  return result.memory ? static_cast<double>(result.memory->peak_bytes()) : 0;
}

/// The allocators that did all of the work, sorted by rising figure.
template <class Figure>
std::vector<const AllocatorResult*> comparable(const std::vector<AllocatorResult>& results, const Figure& figure) {
  std::vector<const AllocatorResult*> order;
  for (const AllocatorResult& result : results) {
    if (!result.allocator.null && !result.death && refused_calls(result) == 0 && figure(result) > 0)
      order.push_back(&result);
  }
  std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) { return figure(*a) < figure(*b); });
  return order;
}

/// Calls compare(lower, higher, number of pairs) for each pair.
template <class Figure, class Compare>
std::vector<Comparison> compare_pairs(const std::vector<AllocatorResult>& results, const Figure& figure,
                                      const Compare& compare) {
  const auto order = comparable(results, figure);
  const std::size_t pairs = order.size() * (order.size() - std::min<std::size_t>(1, order.size())) / 2;
  std::vector<Comparison> all;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t k = i + 1; k < order.size(); ++k) {
      Comparison& pair = all.emplace_back(compare(*order[i], *order[k], pairs));
      pair.less = order[i]->allocator.name;
      pair.more = order[k]->allocator.name;
      if (pair.ratio <= 1) continue;
      // The rounds give the other order than the medians.
      std::swap(pair.less, pair.more);
      pair = {pair.less, pair.more, 1 / pair.ratio, 1 / pair.high, 1 / pair.low, pair.is_known, pair.is_certain};
    }
  }
  return all;
}

/// The logarithms of the rounds' ratios: a pair in the other order then has the same middle.
std::vector<double> log_ratios(const AllocatorResult& result, const AllocatorResult& reference) {
  std::vector<double> ratios;
  const auto wall = [](const TimedSample& sample) { return std::max(1.0, static_cast<double>(sample.wall_ns)); };
  for (std::size_t i = 0; i < std::min(result.timed.size(), reference.timed.size()); ++i)
    ratios.push_back(std::log(wall(result.timed[i]) / wall(reference.timed[i])));
  return ratios;
}

Comparison compare_rounds(const AllocatorResult& less, const AllocatorResult& more, std::size_t pairs) {
  Comparison pair{.ratio = time_ratio(less, more)};
  if (const auto interval = median_interval(log_ratios(less, more), 1 - 0.05 / static_cast<double>(pairs))) {
    pair.low = std::exp(interval->low);
    pair.high = std::exp(interval->high);
    pair.is_known = true;
    pair.is_certain = pair.high < 1 || pair.low > 1;  // the rounds may give the other order
  }
  return pair;
}

/// A program's peak may be so far from that of its replay. In bench/fidelity all pairs that differ by more than 3 % are
/// in the right order.
double least_of_program(std::uint64_t peak) { return std::max(1.0, static_cast<double>(peak) * 0.985 - 65536); }
double most_of_program(std::uint64_t peak) { return static_cast<double>(peak) * 1.015 + 65536; }

Comparison compare_ranges(const AllocatorResult& less, const AllocatorResult& more, std::size_t) {
  const auto [least, most] =
      std::minmax_element(less.memory_runs.begin(), less.memory_runs.end(), MemoryFigures::has_lower_peak);
  const auto [other_least, other_most] =
      std::minmax_element(more.memory_runs.begin(), more.memory_runs.end(), MemoryFigures::has_lower_peak);
  Comparison pair{.ratio = median_peak(less) / median_peak(more)};
  pair.low = least_of_program(least->peak) / most_of_program(other_most->peak);
  pair.high = most_of_program(most->peak) / least_of_program(other_least->peak);
  pair.is_known = less.memory_runs.size() > 1 && more.memory_runs.size() > 1;
  pair.is_certain = pair.is_known && pair.high < 1;
  return pair;
}

/// By how many percent a ratio is less than 1: "9", or with a decimal if that is small.
std::string percent(double ratio) {
  const double less = 100 * (1 - ratio);
  return output::fixed(less, std::abs(less) < 9.95 ? 1 : 0);
}

std::string range_text(const Comparison& pair) { return percent(pair.high) + " to " + percent(pair.low); }

}  // namespace

double time_ratio(const AllocatorResult& result, const AllocatorResult& reference) {
  std::vector<double> ratios = log_ratios(result, reference);
  return ratios.empty() ? std::numeric_limits<double>::quiet_NaN() : std::exp(median_of(ratios));
}

std::vector<Comparison> compare_times(const std::vector<AllocatorResult>& results) {
  return compare_pairs(results, median_wall, compare_rounds);
}

std::vector<Comparison> compare_peaks(const std::vector<AllocatorResult>& results) {
  return compare_pairs(results, median_peak, compare_ranges);
}

std::vector<std::string> verdict_lines(const std::vector<Comparison>& pairs, const std::string& title,
                                       const std::string& word) {
  std::vector<std::string> certain, alike;
  const std::string* current = nullptr;
  for (const Comparison& pair : pairs) {
    const std::string both = title + pair.less + " and " + pair.more;
    if (!pair.is_known) {
      alike.push_back(both + ": too few runs for a verdict");
    } else if (!pair.is_certain) {
      alike.push_back(both + " cannot be told apart (" + range_text(pair) + " %)");
    } else {
      const bool is_same = current && *current == pair.less;
      const std::string share = percent(pair.ratio) + " % (" + range_text(pair) + ") ";
      if (is_same)
        certain.back() += ", " + share + "than " + pair.more;
      else
        certain.push_back(title + pair.less + " is " + share + word + " than " + pair.more);
      current = &pair.less;
    }
  }
  certain.insert(certain.end(), alike.begin(), alike.end());
  for (std::string& line : certain) line = text::to_line(line);
  return certain;
}

std::vector<std::string> verdict_lines(const std::vector<Comparison>& times, const std::vector<Comparison>& peaks,
                                       const std::string& of) {
  std::vector<std::string> lines = verdict_lines(times, "time of " + of + ": ", "faster");
  for (std::string& line : verdict_lines(peaks, "peak of " + of + ": ", "lower")) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> verdict_lines(const std::vector<AllocatorResult>& results) {
  return verdict_lines(compare_times(results), compare_peaks(results), "this recording");
}

}  // namespace cmt::replay
