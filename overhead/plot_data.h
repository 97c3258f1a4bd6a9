#pragma once

#include <cstdint>
#include <vector>

#include "libcmt/heap/address_index.h"
#include "overhead/summary.h"

namespace cmt::overhead {

/// The memory in use over time, for a picture: of each interval of events the moments with the least and with the most
/// live bytes, in their order. So a peak of a single event is kept in a trace of any length. When there are 512
/// intervals, each two become one.
class Curve {
 public:
  /// To be called after each event. Costs two comparisons.
  void add(const MemoryUse& now) {
    if (now.event >= next_) begin_interval(now);
    if (now.live_bytes < least_.live_bytes) least_ = now;
    if (now.live_bytes > most_.live_bytes) most_ = now;
  }

  std::vector<MemoryUse> finish() &&;

 private:
  static constexpr std::size_t intervals_max = 512;

  struct Interval {
    MemoryUse least;
    MemoryUse most;
  };

  void begin_interval(const MemoryUse& now);

  std::vector<Interval> done_;
  MemoryUse least_;
  MemoryUse most_;
  std::uint64_t interval_ = 1;
  std::uint64_t next_ = 0;
};

/// The addresses that were live, for a picture: the live bytes of each bin of addresses at some moments.
///
/// A bin is one page at first. Whenever a moment has more than 2,048 bins, or in the end all moments together more than
/// 192, each two bins become one at all moments. A moment costs a walk over all live blocks. Memory: at most 8 MiB.
class AddressMapper {
 public:
  explicit AddressMapper(int page_shift) : shift_(page_shift) {}

  void add_moment(const MemoryUse& now, const heap::AddressIndex& live);

  /// Drops each moment whose event is not a multiple of `interval`.
  void drop_moments(std::uint64_t interval);

  AddressMap finish() &&;

 private:
  static constexpr std::size_t bins_max = 2048;
  static constexpr std::size_t rows_max = 192;

  void add_block(const heap::PlacedBlock& block);
  void coarsen();

  int shift_;
  std::vector<AddressMap::Moment> moments_;
};

/// The bins that are in use at any of these moments, by rising address.
std::vector<std::uint64_t> used_bins(const std::vector<AddressMap::Moment>& moments);

}  // namespace cmt::overhead
