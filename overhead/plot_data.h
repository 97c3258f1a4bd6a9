#pragma once

#include <cstdint>
#include <vector>

#include "libcmt/heap/address_index.h"
#include "overhead/summary.h"

namespace cmt::overhead {

/// The course of the memory for a picture: of every interval of events the moments with the least and with the most
/// live bytes, in their order. So a peak of one event is kept in a trace of any length. Intervals double when there are
/// 512.
class Curve {
 public:
  /// `now` after an event. Costs two comparisons.
  void add(const Sample& now) {
    if (now.event >= next_) begin(now);
    if (now.live_bytes < least_.live_bytes) least_ = now;
    if (now.live_bytes > most_.live_bytes) most_ = now;
  }

  std::vector<Sample> finish() &&;

 private:
  static constexpr std::size_t intervals_max = 512;

  struct Interval {
    Sample least;
    Sample most;
  };

  void begin(const Sample& now);

  std::vector<Interval> done_;
  Sample least_;
  Sample most_;
  std::uint64_t interval_ = 1;
  std::uint64_t next_ = 0;
};

/// Which memory was live when, for a picture: the live bytes of every bin of addresses, at so many moments.
///
/// A bin is a page, or as many as are needed so that no moment has more than 2,048 bins and all together not more than
/// 192: whenever there are more, two bins become one at all moments. A moment costs a walk over all live blocks.
/// Memory: at most 8 MiB.
class AddressMapper {
 public:
  explicit AddressMapper(int page_shift) : shift_(page_shift) {}

  void add(const Sample& now, const heap::AddressIndex& live);

  /// Drops every moment whose event is no multiple of `interval`.
  void thin(std::uint64_t interval);

  AddressMap finish() &&;

 private:
  static constexpr std::size_t bins_max = 2048;
  static constexpr std::size_t rows_max = 192;

  void add_block(const heap::PlacedBlock& block);
  void coarsen();
  std::vector<std::uint64_t> used_bins() const;

  int shift_;
  std::vector<AddressMap::Moment> moments_;
};

}  // namespace cmt::overhead
