#pragma once

#include <cstdint>

#include "cmt/event.h"

namespace cmt::heap {

/// A live block and where it lies.
struct PlacedBlock {
  std::uint64_t address = 0;  ///< 0: there is no such block
  std::uint64_t size = 0;     ///< bytes asked for
  std::uint64_t born = 0;     ///< the clock when it was made; which clock is the user's choice
  Tag tag = 0;
  std::uint64_t slop = 0;  ///< usable size less the size asked for; 0 where it is not known

  /// The last byte's address. A block of size 0 has its first for it, so that it lies on one page like any other; one
  /// that would pass the end of memory ends there.
  std::uint64_t last() const {
    const std::uint64_t extent = size == 0 ? 0 : size - 1;
    return address + extent < address ? ~std::uint64_t{0} : address + extent;
  }
};

/// A block with the nearest live ones on either side.
struct Neighbourhood {
  PlacedBlock block;
  PlacedBlock prev;  ///< address 0: none
  PlacedBlock next;  ///< address 0: none
};

}  // namespace cmt::heap
