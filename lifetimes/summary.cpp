// Adds up summaries, and computes quantiles of lifetimes.
#include "lifetimes/summary.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <stdexcept>

namespace cmt::lifetimes {
namespace {

template <class Numbers>
void add_all(Numbers& sums, const Numbers& others) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += others[i];
}

}  // namespace

void SizeSummary::add(const SizeSummary& other) {
  allocated += other.allocated;
  leaked += other.leaked;
  analysis::add_known(untouched_bytes, other.untouched_bytes);
  if (other.untouched_unknown_bytes)
    untouched_unknown_bytes = untouched_unknown_bytes.value_or(0) + *other.untouched_unknown_bytes;
  ended += other.ended;
  temporary += other.temporary;
  short_lived += other.short_lived;
  other_thread += other.other_thread;
  lifetime_max = std::max(lifetime_max, other.lifetime_max);
  add_all(lifetimes, other.lifetimes);
}

std::optional<std::uint64_t> SizeSummary::lifetime_quantile(double share) const {
  assert(share >= 0 && share <= 1);
  if (ended == 0) return std::nullopt;
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(ended)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    seen += lifetimes[i];
    if (seen >= wanted && seen > 0) return std::min(AgeClasses::high(i), lifetime_max);
  }
  return lifetime_max;
}

Summary::Summary(heap::Clock::Unit unit) : clock(unit), sizes(SizeClasses::count) {
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i].size_bytes_min = SizeClasses::low(i);
}

SizeSummary Summary::total() const {
  SizeSummary sum;
  for (const SizeSummary& size : sizes) sum.add(size);
  return sum;
}

Amount Summary::peak_sum() const {
  Amount sum;
  for (const Input& input : inputs) sum += input.peak.live;
  return sum;
}

std::uint64_t Summary::untouched_peak_sum() const {
  std::uint64_t sum = unknown;
  for (const Input& input : inputs) analysis::add_known(sum, input.peak.untouched_bytes);
  return sum;
}

std::uint64_t Summary::peak_bytes_max() const {
  std::uint64_t most = 0;
  for (const Input& input : inputs) most = std::max(most, input.peak.live.bytes);
  return most;
}

void Summary::merge(const Summary& other) {
  if (clock != other.clock) throw std::invalid_argument("summaries by different clocks");
  inputs.insert(inputs.end(), other.inputs.begin(), other.inputs.end());
  add_all(by_kind, other.by_kind);
  failed += other.failed;
  unknown_ends += other.unknown_ends;
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i].add(other.sizes[i]);
  add_all(chains, other.chains);
  chain_max = std::max(chain_max, other.chain_max);
  analysis::add_known(moved, other.moved);
  analysis::add_known(moved_bytes, other.moved_bytes);
}

}  // namespace cmt::lifetimes
