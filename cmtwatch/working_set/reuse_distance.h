/// Reuse distances: how large a memory would have to be to still hold a page at its next use.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cmtwatch/working_set/touch_meter.h"
#include "toolkit/output/fields.h"

namespace cmt::watch {

/// The reuse distance of a page is its depth in a stack of pages ordered by last use (Mattson et al., 1970). A memory
/// that keeps the most recently used pages must hold so many to still have the page at its next use.
///
/// Only the interval of a use is known, not the order within it. So there are two bounds for a page that is used in
/// interval k and was last used in j. The distance is at least one more than the pages that were used in j + 1 to k -
/// 1. It is at most the pages that were used in j to k, both included.
///
///     In the intervals {A}, {B, C}, {A, D}, page A is used again at a distance of 3 to 4: A, B, C, and D or not.
///
/// From 128 pages on distances are rounded to seven significant bits, lower bounds down and upper bounds up, so that
/// the histograms stay small. Memory: 50 bytes for each page ever used. Time of an interval: in proportion to its pages
/// and to the number of intervals before.
class ReuseDistance {
 public:
  /// The pages that were used in the next interval, rising.
  void add(std::span<const PageRun> pages);

  /// Uses by distance in pages: of a page in an interval each is one.
  using Histogram = std::map<std::uint64_t, std::uint64_t>;
  const Histogram& lower() const { return lower_; }
  const Histogram& upper() const { return upper_; }

  std::uint64_t uses() const { return uses_; }
  /// Uses of pages that were not used before, which have no distance.
  std::uint64_t first_uses() const { return last_.size(); }

 private:
  std::unordered_map<std::uint64_t, std::size_t> last_;  ///< the interval of a page's last use
  std::vector<std::uint64_t> sizes_;                     ///< pages whose last use was in each interval
  std::uint64_t uses_ = 0;
  Histogram lower_;
  Histogram upper_;
};

/// Returns the least distance that `share` of all uses do not exceed, or nullopt if too many are first uses.
std::optional<std::uint64_t> distance_of_share(const ReuseDistance::Histogram& histogram, std::uint64_t uses,
                                               double share);

/// One column of a reuse histogram.
struct ReuseCount {
  std::uint64_t pages = 0;
  std::uint64_t uses = 0;
};
template <class Visitor, output::DescribedAs<ReuseCount> C>
void describe(Visitor& field, C& count) {
  field("distance_pages", count.pages, "the reuse distance");
  field("uses", count.uses, "uses of pages at this distance");
}

inline std::vector<ReuseCount> counts_of(const ReuseDistance::Histogram& histogram) {
  std::vector<ReuseCount> counts;
  for (const auto& [pages, uses] : histogram) counts.push_back({pages, uses});
  return counts;
}

template <class Visitor, output::DescribedAs<ReuseDistance> R>
void describe(Visitor& field, R& reuse) {
  field("uses", reuse.uses(), "of pages; a page counts once in an interval");
  field("first_uses", reuse.first_uses(), "of pages that were not used before, which have no distance");
  field("lower_bounds", counts_of(reuse.lower()), "uses by the least distance that is possible");
  field("upper_bounds", counts_of(reuse.upper()), "uses by the largest distance that is possible");
}

}  // namespace cmt::watch
