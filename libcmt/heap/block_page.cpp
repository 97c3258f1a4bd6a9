#include "heap/block_page.h"

#include <algorithm>
#include <new>

namespace cmt::heap {

void BlockPage::resize(Pointer& page, std::size_t capacity) {
  void* moved = std::realloc(page.get(), sizeof(BlockPage) + capacity * sizeof(PlacedBlock));
  if (moved == nullptr) throw std::bad_alloc();
  static_cast<void>(page.release());
  page.reset(static_cast<BlockPage*>(moved));
  page->capacity_ = static_cast<std::uint32_t>(capacity);
}

void BlockPage::insert(Pointer& page, std::size_t rank, const PlacedBlock& block) {
  if (!page) {
    resize(page, 1);
    page->size_ = 0;
  }
  if (page->size_ == page->capacity_) resize(page, page->capacity_ + (page->capacity_ + 1) / 2);
  PlacedBlock* at = page->begin() + rank;
  std::copy_backward(at, page->begin() + page->size_, page->begin() + page->size_ + 1);
  *at = block;
  ++page->size_;
}

void BlockPage::erase(Pointer& page, std::size_t rank) {
  PlacedBlock* at = page->begin() + rank;
  std::copy(at + 1, page->begin() + page->size_, at);
  if (--page->size_ == 0) return page.reset();
  if (page->capacity_ > 8 && page->size_ * 4u < page->capacity_) resize(page, page->capacity_ / 2);
}

}  // namespace cmt::heap
