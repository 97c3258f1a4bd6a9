#include "lifetimes/summary.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>

namespace cmt::lifetimes {
namespace {

void add(SizeSummary& sum, const SizeSummary& other) {
  sum.allocated.add(other.allocated);
  sum.leaked.add(other.leaked);
  sum.ended += other.ended;
  sum.temporary += other.temporary;
  sum.short_lived += other.short_lived;
  sum.other_thread += other.other_thread;
  sum.lifetime_max = std::max(sum.lifetime_max, other.lifetime_max);
}

template <class Numbers>
void add_all(Numbers& sums, const Numbers& others) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += others[i];
}

/// The end of the class in which the share is reached, but no more than the greatest.
std::optional<std::uint64_t> quantile_of(std::span<const std::uint64_t> counts, std::uint64_t all, std::uint64_t max,
                                         double share) {
  if (all == 0) return std::nullopt;
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(all)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    seen += counts[i];
    if (seen >= wanted && seen > 0) return std::min(AgeClasses::high(i), max);
  }
  return max;
}

}  // namespace

std::uint64_t short_lived_max(heap::Clock::Unit clock) {
  switch (clock) {
    case heap::Clock::Unit::events:
      return 256;
    case heap::Clock::Unit::time:
      return 1'000'000;
    case heap::Clock::Unit::bytes:
      return 32'768;
  }
  return 0;
}

SizeSummary Summary::total() const {
  SizeSummary sum;
  for (const SizeSummary& size : sizes) add(sum, size);
  return sum;
}

std::optional<std::uint64_t> Summary::quantile(std::size_t size_class, double share) const {
  const std::span<const std::uint64_t> counts(&ages[size_class * AgeClasses::count], AgeClasses::count);
  return quantile_of(counts, sizes[size_class].ended, sizes[size_class].lifetime_max, share);
}

std::optional<std::uint64_t> Summary::quantile(double share) const {
  std::array<std::uint64_t, AgeClasses::count> counts{};
  for (std::size_t i = 0; i < ages.size(); ++i) counts[i % AgeClasses::count] += ages[i];
  const SizeSummary sum = total();
  return quantile_of(counts, sum.ended, sum.lifetime_max, share);
}

void Summary::merge(const Summary& other) {
  if (clock != other.clock) throw std::invalid_argument("summaries by different clocks");
  inputs.insert(inputs.end(), other.inputs.begin(), other.inputs.end());
  add_all(by_kind, other.by_kind);
  failed += other.failed;
  unknown_ends += other.unknown_ends;
  for (std::size_t i = 0; i < sizes.size(); ++i) add(sizes[i], other.sizes[i]);
  add_all(ages, other.ages);
  add_all(chains, other.chains);
  chain_max = std::max(chain_max, other.chain_max);
}

}  // namespace cmt::lifetimes
