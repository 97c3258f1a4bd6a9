// Draws the points of simulated samplers, as simulated_samplers.h describes.
#include "analysis/sampling/simulated_samplers.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace cmt::analysis {

SimulatedSamplers::SimulatedSamplers(By by, std::uint64_t interval, unsigned runs, std::uint64_t seed)
    : keys_(by), interval_(interval) {
  assert(interval != 0 && runs <= runs_max);
  for (unsigned run = 0; run < runs; ++run) random_.emplace_back(seed * runs_max + run);
}

/// The bytes to the next point: exponentially distributed.
double SimulatedSamplers::gap(unsigned run) {
  return -std::log1p(-static_cast<double>(random_[run]() >> 11) * 0x1p-53) * static_cast<double>(interval_);
}

std::uint64_t SimulatedSamplers::runs_that_sample(const Event& event) {
  const auto [found, is_new] = threads_.try_emplace(event.thread);
  Thread& thread = found.value();
  if (is_new) {
    for (unsigned run = 0; run < random_.size(); ++run) thread.points.push_back(gap(run));
    thread.nearest = *std::min_element(thread.points.begin(), thread.points.end());
  }
  thread.asked += static_cast<double>(event.bytes());
  if (thread.asked < thread.nearest) return 0;
  std::uint64_t runs = 0;
  for (unsigned run = 0; run < random_.size(); ++run) {
    if (thread.asked < thread.points[run]) continue;
    runs |= std::uint64_t{1} << run;
    thread.points[run] = thread.asked + gap(run);
  }
  thread.nearest = *std::min_element(thread.points.begin(), thread.points.end());
  return runs;
}

template <class Change>
void SimulatedSamplers::for_each_sum(const Sample& sample, Change change) {
  const Weight weight = weight_of(sample.size, interval_);
  for (std::uint64_t runs = sample.runs; runs != 0; runs &= runs - 1) {
    const auto run = static_cast<unsigned>(std::countr_zero(runs));
    change(sums_[std::uint64_t{sample.key} * runs_max + run], weight);
  }
}

void SimulatedSamplers::count_event(const Event& event, std::uint64_t peaks) {
  if (is_about_pages(event.kind)) return;
  const KeyId key = keys_.key_of(event);
  if (event.ends_block()) {
    if (const Sample* const ended = samples_.erase(event.old_tag))
      for_each_sum(*ended, [&](Sums& sums, const Weight& weight) { sums.live.change(peaks).remove(weight); });
  }
  if (!event.makes_block() || event.bytes() == 0) return;
  const Sample sample{event.tag, event.bytes(), runs_that_sample(event), key};
  if (sample.runs == 0 || !samples_.insert(sample)) return;
  for_each_sum(sample, [&](Sums& sums, const Weight& weight) {
    sums.allocated.interval = sums.live.change(peaks).interval = interval_;
    sums.allocated.add(weight);
    sums.live.change(peaks).add(weight);
  });
}

}  // namespace cmt::analysis
