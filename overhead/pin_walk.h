#pragma once

#include <cstdint>
#include <vector>

#include "libcmt/heap/address_index.h"
#include "overhead/summary.h"

namespace cmt::overhead {

/// One walk over all live blocks by rising address. It finds the pages that old blocks are on and the blocks that pin
/// pages. Costs some 3 ns a block.
class PinWalk {
 public:
  /// A block is old if it was made before `old_before`, in allocated bytes.
  PinWalk(const heap::AddressIndex& live, int page_shift, std::uint64_t old_before);

  const OldBlocks& old() const { return old_; }

  /// The blocks that pin a page. A block across the border of two pages that is alone on both is there twice.
  const std::vector<heap::PlacedBlock>& pins() const { return pins_; }

 private:
  bool is_old(std::uint64_t born) const { return born < old_before_; }
  void visit(const heap::PlacedBlock& block);
  void close_page();

  int page_shift_;
  std::uint64_t old_before_;
  OldBlocks old_;
  std::uint64_t page_ = ~std::uint64_t{0};      // of the last block's end
  std::uint64_t old_page_ = ~std::uint64_t{0};  // of the last old block's end
  std::uint64_t on_page_ = 0;                   // blocks seen on page_
  heap::PlacedBlock previous_{};
  std::vector<heap::PlacedBlock> pins_;
};

}  // namespace cmt::overhead
