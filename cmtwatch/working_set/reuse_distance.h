#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cmtwatch/working_set/touch_meter.h"

namespace cmt::watch {

/// How far apart the uses of a page are: its place in a stack of pages in the order of their last use, which is how
/// many pages a memory that keeps the last used ones must hold to have it still (Mattson et al., 1970).
///
/// Known is only in which interval a page was used, not in what order within it. So there are two bounds. For a page
/// used in interval k and before that last in j: at least one more than the pages that were used between the two,
/// in j + 1 to k - 1; at most the pages that were used in j to k, both included.
///
///     Of the intervals {A}, {B, C}, {A, D}, page A comes back at a distance of 3 to 4: A, B, C, and D or not.
///
/// From 128 pages on distances are kept to seven bits, lower bounds rounded down and upper ones up, so that memory
/// stays bounded: 50 bytes for each page ever used. An interval takes time for its pages and for the intervals before.
class ReuseDistance {
 public:
  /// The pages that were used in the next interval, rising.
  void add(std::span<const PageRun> pages);

  /// Uses by distance in pages: of a page in an interval each is one.
  using Histogram = std::map<std::uint64_t, std::uint64_t>;
  const Histogram& lower() const { return lower_; }
  const Histogram& upper() const { return upper_; }

  std::uint64_t uses() const { return uses_; }
  /// Those of a page that was not used before, which have no distance.
  std::uint64_t first_uses() const { return last_.size(); }

 private:
  std::unordered_map<std::uint64_t, std::size_t> last_;  ///< the interval of a page's last use
  std::vector<std::uint64_t> sizes_;                     ///< pages whose last use was in each interval
  std::uint64_t uses_ = 0;
  Histogram lower_;
  Histogram upper_;
};

/// The least distance that `share` of all uses do not exceed; nothing where more than the rest are first uses.
std::optional<std::uint64_t> distance_of_share(const ReuseDistance::Histogram& histogram, std::uint64_t uses,
                                               double share);

}  // namespace cmt::watch
