/// Walks over all live blocks by rising address, for the figures that are too expensive to keep up to date.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/places/summary.h"
#include "libcmt/heap/address_index.h"

namespace cmt::analysis {

struct PinnedPages {
  OldBlocks old;
  std::vector<heap::PlacedBlock> pins;  ///< a block that is alone on two pages is listed twice
};

/// Finds the pages that old blocks are on, and the blocks that pin pages. A block is old if it was made before
/// `old_before`, in allocated bytes. Costs some 3 ns a block.
PinnedPages find_pins(const heap::AddressIndex& live, int page_shift, std::uint64_t old_before);

/// Finds the holders of the pages. Their `event`, `pages` and `live_bytes` are not set. `allocated_bytes`: the bytes
/// allocated so far, which is the clock of ages. Costs some 15 ns a block.
Holders find_holders(const heap::AddressIndex& live, int page_shift, std::uint64_t allocated_bytes);

}  // namespace cmt::analysis
