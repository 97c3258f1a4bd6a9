#pragma once

#include <cstdint>

#include "libcmt/heap/placed_block.h"

namespace cmt::heap {

/// Bytes from the end of one block, by the size asked for, to the begin of the next; below 0 where they overlap.
inline std::int64_t gap(const PlacedBlock& low, const PlacedBlock& high) {
  return static_cast<std::int64_t>(high.address - low.address - low.size);
}

/// Pages of 2^shift bytes that a block is on and neither neighbour: by so many the memory in use grows when the block
/// is made, and shrinks when it is ended. As blocks do not overlap, only the first page can be shared with the block
/// before, and only the last with the block behind; what nearer and farther blocks share is the same page.
inline std::uint64_t own_pages(const Neighbourhood& found, int shift) {
  const std::uint64_t first = found.block.address >> shift;
  const std::uint64_t last = found.block.last() >> shift;
  std::uint64_t pages = last - first + 1;
  if (found.prev.address != 0 && found.prev.last() >> shift == first) --pages;
  if (pages > 0 && found.next.address != 0 && found.next.address >> shift == last) --pages;
  return pages;
}

}  // namespace cmt::heap
