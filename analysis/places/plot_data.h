/// Collects the data of overhead's pictures in bounded memory, for traces of any length.
#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <cstdint>
#include <vector>

#include "analysis/places/summary.h"
#include "libcmt/heap/address_index.h"
#include "libcmt/number_hash.h"

namespace cmt::analysis {

/// Collects the memory in use over time, for a picture. Each interval of events has two moments: with the least and
/// with the most live bytes. So a peak of a single event is kept in a trace of any length. When there are 512
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

/// Collects the addresses that were live, for a picture: the live bytes of each bin of addresses at some moments.
///
/// A bin is one page at first. If a moment has more than 2,048 bins, each two bins become one at all moments. The same
/// happens at the end while all moments together use more than 192 bins.
///
/// The bytes of bins are kept up to date with every block, so that a moment costs no walk over the live blocks. A block
/// counts in the bins of its first and its last byte. The bins between are whole: only the begin and the end of their
/// range are counted. So a block costs the same whatever its size.
///
/// Eight neighbouring bins are stored together, because a program's next block is mostly near its last one. These bins
/// are found without a search, and a moment has an eighth as much to sort. Memory: at most 18 MiB.
class AddressMapper {
 public:
  explicit AddressMapper(int page_shift) : shift_(page_shift) {}

  void begin_block(const heap::PlacedBlock& block) { count(block, 1); }
  void end_block(const heap::PlacedBlock& block) { count(block, -1); }

  void add_moment(const MemoryUse& now);

  /// Drops each moment whose event is not a multiple of `interval`.
  void drop_moments(std::uint64_t interval);

  AddressMap finish() &&;

 private:
  static constexpr std::size_t bins_max = 2048;
  static constexpr std::size_t rows_max = 192;
  static constexpr std::size_t changes_max = 65'536;

  /// The difference of a bin from the previous one. Sums wrap.
  struct Change {
    std::uint64_t bytes = 0;   ///< bytes in this bin of blocks that begin or end in it
    std::uint64_t whole = 0;   ///< blocks that fill the bins from this one on, less those that ended before it
    std::uint64_t blocks = 0;  ///< blocks that begin in this bin
    bool operator==(const Change&) const = default;
  };

  /// The changes of neighbouring bins.
  struct Stretch {
    static constexpr std::uint64_t bins = 8;
    std::uint64_t number = 0;  ///< of the first bin, divided by `bins`
    std::array<Change, bins> changes{};
  };

  struct ChangedBin {
    std::uint64_t bin;
    Change change;
  };

  void count(const heap::PlacedBlock& block, std::uint64_t times);
  void change(std::uint64_t bin, const Change& by);
  Stretch& stretch_of(std::uint64_t bin);
  std::vector<ChangedBin> changed_bins() const;
  void replace(const std::vector<ChangedBin>& changed);
  std::vector<AddressMap::Bin> bins_now();
  void coarsen();

  int shift_;
  std::vector<Stretch> stretches_;  ///< all stretches with a changed bin, and some without
  tsl::robin_map<std::uint64_t, std::uint32_t, NumberHash> indices_;  ///< in stretches_, by number
  std::size_t last_ = 0;                                              ///< the index of the last stretch that was used
  std::size_t changed_ = 0;                                           ///< bins that differ from the previous one
  std::vector<AddressMap::Moment> moments_;
};

/// Returns the bins that are in use at any of these moments, by rising address.
std::vector<std::uint64_t> used_bins(const std::vector<AddressMap::Moment>& moments);

}  // namespace cmt::analysis
