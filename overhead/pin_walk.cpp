#include "overhead/pin_walk.h"

namespace cmt::overhead {

PinWalk::PinWalk(const heap::AddressIndex& live, int page_shift, std::uint64_t old_before)
    : page_shift_(page_shift), old_before_(old_before) {
  live.for_each([this](const heap::PlacedBlock& block) { visit(block); });
  close_page();
}

void PinWalk::visit(const heap::PlacedBlock& block) {
  const std::uint64_t first = block.address >> page_shift_;
  const std::uint64_t last = block.last() >> page_shift_;
  if (first != page_) close_page();
  last_ = block;
  ++on_page_;
  page_ = last;
  if (last != first) {
    close_page();
    on_page_ = 1;
  }
  if (block.born >= old_before_) return;
  old_bytes_ += block.size;
  old_pages_ += last - first + (first == old_page_ ? 0 : 1);
  old_page_ = last;
}

void PinWalk::close_page() {
  const std::uint64_t small = (std::uint64_t{1} << page_shift_) / 8;
  if (on_page_ == 1 && last_.born < old_before_ && last_.size <= small) pins_.push_back(last_);
  on_page_ = 0;
}

}  // namespace cmt::overhead
