// Computes the dispersion and the bounds of chance as chance.h describes.
#include "analysis/differences/chance.h"

#include <algorithm>
#include <cassert>

namespace cmt::analysis {

std::optional<ChanceSample> chance_sample(const DiffUse& use, double squared_bytes, Metric metric) {
  const auto both = [&use](Metric which) {
    return static_cast<double>(use.before.metric(which)) + static_cast<double>(use.after.metric(which));
  };
  ChanceSample sample{.change = static_cast<double>(use.change(metric))};
  switch (metric) {
    case Metric::bytes:
      sample.variance = squared_bytes;
      sample.blocks = both(Metric::blocks);
      return sample;
    case Metric::blocks:
    case Metric::temporary:
    case Metric::short_lived:
    case Metric::other_thread:
    case Metric::reallocated:
      sample.variance = sample.blocks = both(metric);
      return sample;
    default:
      return std::nullopt;
  }
}

std::optional<double> dispersion_of(const std::vector<ChanceSample>& samples) {
  constexpr double median_of_normal = 0.455;  // of the square of a standard normal distribution
  std::vector<double> ratios;
  for (const ChanceSample& each : samples) {
    if (each.blocks >= blocks_least && each.variance > 0) ratios.push_back(each.change * each.change / each.variance);
  }
  if (ratios.size() < samples_least) return std::nullopt;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  const double dispersion = *middle / median_of_normal;
  return dispersion > dispersion_max ? std::nullopt : std::optional(dispersion);
}

bool is_within_chance(const ChanceSample& sample, double dispersion) {
  assert(dispersion >= 0 && dispersion <= dispersion_max);
  return sample.blocks >= blocks_least &&
         sample.change * sample.change <= deviations_max * deviations_max * dispersion * sample.variance;
}

}  // namespace cmt::analysis
