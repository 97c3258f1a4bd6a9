// Weights of samples, and intervals of their sums. estimate.h has the formulas.
#include "analysis/sampling/estimate.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "cmt/event.h"
#include "toolkit/output/numbers.h"

namespace cmt::analysis {
namespace {

constexpr double z = 1.959964;  // 97.5 % of the normal distribution

/// A quantile of the gamma distribution of this shape, with z of the normal distribution: Wilson and Hilferty.
double gamma_quantile(double shape, double quantile) {
  assert(shape > 0);
  const double root = 1 - 1 / (9 * shape) + quantile / (3 * std::sqrt(shape));
  return root <= 0 ? 0 : shape * root * root * root;
}

/// The lower end of what is left without `fewer`, which is the weight of one sample.
double low_of(double sum, double variance, double fewer) {
  const double left = sum - fewer, its_variance = variance - fewer * fewer;
  if (left <= 0) return 0;
  return its_variance <= 0 ? left : its_variance / left * gamma_quantile(left * left / its_variance, -z);
}

/// `further`: the weight of the further sample that the upper end counts.
Range range_of(double sum, double variance, double further, bool is_at_peak) {
  // Blocks that are surely samples have hardly any variance, and none of them is left out.
  const double low = low_of(sum, variance, is_at_peak ? std::min(further, std::sqrt(variance)) : 0);
  const double with_further = sum + further, its_variance = variance + further * further;
  if (its_variance <= 0) return {low, sum};
  return {low, its_variance / with_further * gamma_quantile(with_further * with_further / its_variance, z)};
}

std::string unit_of(const std::string& text) { return text.substr(text.find(' ')); }

std::string three_digits(double number) {
  double unit = 1;
  while (number / unit >= 999.5 && unit < 1e18) unit *= 10;
  return output::with_commas(whole(std::round(number / unit) * unit));
}

}  // namespace

Weight weight_of(std::uint64_t size, std::uint64_t interval) {
  assert(interval != 0);
  if (size == 0) return {};
  const double bytes = static_cast<double>(size), points = bytes / static_cast<double>(interval);
  const double blocks = -1 / std::expm1(-points);  // 1 / p
  const double beyond = 1 / std::expm1(points);    // 1 / p - 1, which the difference would lose if p is nearly 1
  return {bytes * blocks, blocks, bytes * blocks * bytes * beyond, blocks * beyond};
}

void Estimate::add(const Weight& sample) {
  *this += {.samples = 1,
            .bytes = sample.bytes,
            .blocks = sample.blocks,
            .bytes_variance = sample.bytes_variance,
            .blocks_variance = sample.blocks_variance};
}

void Estimate::remove(const Weight& sample) {
  assert(samples != 0);
  if (--samples == 0) {
    *this = {.interval = interval};
    return;
  }
  bytes = std::max(bytes - sample.bytes, 0.0);
  blocks = std::max(blocks - sample.blocks, 0.0);
  bytes_variance = std::max(bytes_variance - sample.bytes_variance, 0.0);
  blocks_variance = std::max(blocks_variance - sample.blocks_variance, 0.0);
}

Estimate& Estimate::operator+=(const Estimate& more) {
  interval = std::max(interval, more.interval);
  samples += more.samples;
  bytes += more.bytes;
  blocks += more.blocks;
  bytes_variance += more.bytes_variance;
  blocks_variance += more.blocks_variance;
  is_at_peak |= more.is_at_peak;
  return *this;
}

Range interval95(const Estimate& estimate) {
  if (estimate.samples == 0) return {0, unseen_below(estimate.interval)};
  return range_of(estimate.bytes, estimate.bytes_variance, static_cast<double>(estimate.interval), estimate.is_at_peak);
}

Range blocks_interval95(const Estimate& estimate) {
  if (estimate.samples == 0) return {};
  return range_of(estimate.blocks, estimate.blocks_variance, estimate.blocks_variance / estimate.blocks,
                  estimate.is_at_peak);
}

Range change95(const Estimate& before, const Estimate& after, bool of_blocks) {
  const auto range = [&](const Estimate& sum) { return of_blocks ? blocks_interval95(sum) : interval95(sum); };
  const Range from = range(before), to = range(after);
  const double old_sum = of_blocks ? before.blocks : before.bytes, sum = of_blocks ? after.blocks : after.bytes;
  return {sum - old_sum - std::hypot(sum - to.low, from.high - old_sum),
          sum - old_sum + std::hypot(to.high - sum, old_sum - from.low)};
}

double unseen_below(std::uint64_t interval) { return -std::log(0.05) * static_cast<double>(interval); }

std::uint64_t whole(double number) {
  return number >= 0x1p64 ? unknown - 1 : static_cast<std::uint64_t>(std::round(number));
}

std::string estimate_text(const Estimate& estimate) {
  const Range range = interval95(estimate);
  const std::string sum = output::bytes_text(whole(estimate.bytes));
  std::string low = output::bytes_text(whole(range.low)), high = output::bytes_text(whole(range.high));
  if (estimate.samples == 0) return sum + " (below " + high + ")";
  if (unit_of(low) == unit_of(sum) && unit_of(high) == unit_of(sum)) {
    low.resize(low.find(' '));
    high.resize(high.find(' '));
  }
  return sum + " (" + low + " to " + high + ")";
}

std::string blocks_text(const Estimate& estimate) {
  if (estimate.samples == 0) return "0";
  const Range range = blocks_interval95(estimate);
  return three_digits(estimate.blocks) + " (" + three_digits(range.low) + " to " + three_digits(range.high) + ")";
}

SampledUse& SampledUse::operator+=(const SampledUse& more) {
  allocated += more.allocated;
  peak += more.peak;
  live += more.live;
  at_begin += more.at_begin;
  return *this;
}

}  // namespace cmt::analysis
