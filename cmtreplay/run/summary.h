#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cmt::replay {

/// Median and spread of a few samples.
struct Summary {
  double median = 0;
  double min = 0;
  double max = 0;
};

/// Of an even number the median is the mean of the middle two. Of none, zeros.
inline Summary summarise(std::vector<std::uint64_t> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  const auto at = [&samples](std::size_t i) { return static_cast<double>(samples[i]); };
  return {.median = samples.size() % 2 == 1 ? at(half) : (at(half - 1) + at(half)) / 2,
          .min = at(0),
          .max = at(samples.size() - 1)};
}

}  // namespace cmt::replay
