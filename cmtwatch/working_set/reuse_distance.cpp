// Counts distances with a map from page to its last interval, and sums over intervals.
#include "cmtwatch/working_set/reuse_distance.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>

namespace cmt::watch {
namespace {

/// Keeps the first seven significant bits, rounding down or up.
std::uint64_t rounded_down(std::uint64_t distance) {
  const int dropped = std::max(0, static_cast<int>(std::bit_width(distance)) - 7);
  return distance >> dropped << dropped;
}
std::uint64_t rounded_up(std::uint64_t distance) {
  const std::uint64_t down = rounded_down(distance);
  if (down == distance) return distance;
  return down + (std::uint64_t{1} << (std::bit_width(distance) - 7));
}

}  // namespace

void ReuseDistance::add(std::span<const PageRun> pages) {
  assert(std::adjacent_find(pages.begin(), pages.end(), [](const PageRun& one, const PageRun& next) {
           return one.first + one.count > next.first;
         }) == pages.end());
  const std::size_t now = sizes_.size();
  std::map<std::size_t, std::uint64_t> returned;  // by the interval of their last use
  std::uint64_t used = 0;
  for (const PageRun& run : pages) {
    for (std::uint64_t page = run.first; page < run.first + run.count; ++page) {
      const auto [known, is_new] = last_.try_emplace(page, now);
      if (!is_new) {
        ++returned[known->second];
        known->second = now;
      }
    }
    used += run.count;
  }
  uses_ += used;

  // Goes from the latest interval back to the first. For a page last used in interval j, `since` counts the pages used
  // after j and before now. `returned_since` counts the pages of the current interval whose last use was in j or later.
  std::uint64_t since = 0;
  std::uint64_t returned_since = 0;
  std::size_t after = now;
  for (auto of = returned.rbegin(); of != returned.rend(); ++of) {
    const auto& [last, count] = *of;
    for (; after > last + 1; --after) since += sizes_[after - 1];
    assert(last < now && count <= sizes_[last]);
    lower_[rounded_down(since + 1)] += count;
    returned_since += count;
    upper_[rounded_up(since + sizes_[last] + used - returned_since)] += count;
  }
  for (const auto& [last, count] : returned) sizes_[last] -= count;
  sizes_.push_back(used);
  assert(std::accumulate(sizes_.begin(), sizes_.end(), std::uint64_t{0}) == last_.size());
}

std::optional<std::uint64_t> distance_of_share(const ReuseDistance::Histogram& histogram, std::uint64_t uses,
                                               double share) {
  std::uint64_t sum = 0;
  for (const auto& [distance, count] : histogram) {
    sum += count;
    if (static_cast<double>(sum) >= share * static_cast<double>(uses)) return distance;
  }
  return std::nullopt;
}

}  // namespace cmt::watch
