/// Bounds the pages that an allocator can still hold without a live block, for overhead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace cmt::analysis {

/// Counts the held pages: pages without a live block that a block was on before. A trace does not contain when an
/// allocator gives pages back, so the number is an upper bound. Pages between arenas and mappings on which no block
/// ever was do not count.
///
/// A sample of the process's resident memory bounds it too. From then on the bound rises only by pages that lose their
/// last block.
///
/// Memory: some 64 bytes for each stretch of pages that blocks were ever on.
class HeldPages {
 public:
  /// A block is made on pages `first` to `last`. `pages` of these had no block.
  void gain(std::uint64_t first, std::uint64_t last, std::uint64_t pages);
  /// A block has ended, and `pages` pages have no block any more.
  void lose(std::uint64_t pages);
  /// A sample says that so many pages of the process are resident.
  void limit(std::uint64_t pages) { most_ = std::min(most_, pages); }

  /// Pages that live blocks are on.
  std::uint64_t live() const { return live_; }
  std::uint64_t most() const { return most_; }

 private:
  std::uint64_t add_range(std::uint64_t first, std::uint64_t last);
  std::uint64_t free() const { return ever_ > live_ ? ever_ - live_ : 0; }

  std::map<std::uint64_t, std::uint64_t> ranges_;  ///< first and last page of each stretch
  std::uint64_t ever_ = 0;                         ///< pages in the ranges
  std::uint64_t live_ = 0;
  std::uint64_t most_ = 0;
};

}  // namespace cmt::analysis
