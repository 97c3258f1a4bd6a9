/// Counts the untouched pages of live blocks, for overhead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "cmt/event.h"
#include "libcmt/heap/address_index.h"
#include "libcmt/heap/touched_pages.h"

namespace cmt::analysis {

/// Counts the pages of live blocks that were not touched so far, and those of which nobody knows it. A page counts if
/// it is wholly in a block whose pages were recorded, and no event reports it as touched or resident. All pages of a
/// block are unknown if one event reports all as resident (heap::is_of_all_resident). A page at a block's end may
/// contain the allocator's own data, or another block, and does not count. Memory: the same as TouchedPages, and some
/// 70 bytes for each live block of that size.
class UntouchedPages {
 public:
  /// `touched_min`: the least size of blocks whose touched pages were recorded; 0: none were.
  UntouchedPages(std::uint64_t touched_min, int page_shift) : touched_min_(touched_min), page_shift_(page_shift) {}

  bool is_recorded() const { return touched_min_ != 0; }
  std::uint64_t count() const { return count_; }
  std::uint64_t unknown() const { return unknown_; }

  void begin_block(const heap::PlacedBlock& block) {
    if (!is_watched(block)) return;
    blocks_[block.tag] = {block};
    count_ += pages_in(block, 0, block.size);
  }

  void end_block(const heap::PlacedBlock& block) {
    if (!is_watched(block)) return;
    const auto ended = blocks_.find(block.tag);
    if (ended == blocks_.end()) return;
    unknown_ -= ended->second.unknown;
    blocks_.erase(ended);
    runs_.for_each_gap(block.tag, block.size,
                       [&](std::uint64_t begin, std::uint64_t end) { count_ -= pages_in(block, begin, end); });
    runs_.end_block(block.tag);
  }

  /// Adds an event that reports pages of a block.
  void touch(const Event& run) {
    const auto found = blocks_.find(run.old_tag);
    if (found == blocks_.end()) return;
    const heap::PlacedBlock& block = found->second.block;
    const std::uint64_t before = count_;
    runs_.add(run, heap::bytes_of(run, block.address, block.size), block.size,
              [&](std::uint64_t begin, std::uint64_t end, bool added) {
                const std::uint64_t pages = pages_in(block, begin, end);
                count_ += added ? pages : 0 - pages;
              });
    if (!heap::is_of_all_resident(run)) return;
    found->second.unknown += before - count_;
    unknown_ += before - count_;
  }

 private:
  struct Watched {
    heap::PlacedBlock block;
    std::uint64_t unknown = 0;  ///< pages
  };

  bool is_watched(const heap::PlacedBlock& block) const { return is_recorded() && block.size >= touched_min_; }

  /// Returns the number of pages that are wholly in a range of a block's bytes.
  std::uint64_t pages_in(const heap::PlacedBlock& block, std::uint64_t begin, std::uint64_t end) const {
    const std::uint64_t mask = (std::uint64_t{1} << page_shift_) - 1;
    const std::uint64_t first = (block.address + begin + mask) >> page_shift_;
    return std::max((block.address + end) >> page_shift_, first) - first;
  }

  std::uint64_t touched_min_;
  int page_shift_;
  std::uint64_t count_ = 0, unknown_ = 0;
  std::unordered_map<Tag, Watched> blocks_;  // live blocks of touched_min_ bytes or more
  heap::TouchedPages runs_;
};

}  // namespace cmt::analysis
