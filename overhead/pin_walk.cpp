#include "overhead/pin_walk.h"

namespace cmt::overhead {

PinWalk::PinWalk(const heap::AddressIndex& live, int page_shift, std::uint64_t old_before)
    : page_shift_(page_shift), old_before_(old_before) {
  live.for_each([this](const heap::PlacedBlock& block) { visit(block); });
  close_page();
  old_.pinned_pages = pins_.size();
  old_.packed_bytes += old_.bytes;
  const std::uint64_t page_size = std::uint64_t{1} << page_shift_;
  const std::uint64_t packed_pages = old_.packed_bytes / page_size + (old_.packed_bytes % page_size != 0);
  old_.separable_pages = old_.pages > packed_pages ? old_.pages - packed_pages : 0;
}

void PinWalk::visit(const heap::PlacedBlock& block) {
  const std::uint64_t first = block.address >> page_shift_;
  const std::uint64_t last = block.last() >> page_shift_;
  if (first != page_) close_page();
  const std::uint64_t gap = block.address - previous_.address - previous_.size;
  if (gap <= small_gap_max && is_old(previous_.born)) old_.packed_bytes += gap;
  previous_ = block;
  ++on_page_;
  page_ = last;
  if (last != first) {
    close_page();
    on_page_ = 1;
  }
  if (!is_old(block.born)) return;
  old_.bytes += block.size;
  old_.pages += last - first + (first == old_page_ ? 0 : 1);
  old_page_ = last;
}

void PinWalk::close_page() {
  const std::uint64_t small = (std::uint64_t{1} << page_shift_) / 8;
  if (on_page_ == 1 && is_old(previous_.born) && previous_.size <= small) pins_.push_back(previous_);
  on_page_ = 0;
}

}  // namespace cmt::overhead
