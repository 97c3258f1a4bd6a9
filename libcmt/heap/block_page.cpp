#include "libcmt/heap/block_page.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace cmt::heap {

void BlockPage::resize(Pointer& page, std::size_t capacity) {
  Pointer larger(static_cast<BlockPage*>(std::malloc(bytes(capacity))));
  if (!larger) throw std::bad_alloc();
  larger->size_ = page ? page->size_ : 0;
  larger->capacity_ = static_cast<std::uint32_t>(capacity);
  if (page) {
    std::copy_n(page->blocks(), page->size_, larger->blocks());
    std::copy_n(page->offsets(), page->size_, larger->offsets());
  }
  page = std::move(larger);
}

void BlockPage::insert(Pointer& page, std::size_t rank, std::uint64_t offset, const PackedBlock& block) {
  if (!page) resize(page, 1);
  if (page->size_ == page->capacity_) resize(page, page->capacity_ + (page->capacity_ + 1) / 2);
  const std::size_t behind = page->size_ - rank;
  PackedBlock* const at = page->blocks() + rank;
  std::uint16_t* const place = page->offsets() + rank;
  std::memmove(at + 1, at, behind * sizeof *at);
  std::memmove(place + 1, place, behind * sizeof *place);
  *at = block;
  *place = static_cast<std::uint16_t>(offset);
  ++page->size_;
}

void BlockPage::erase(Pointer& page, std::size_t rank) {
  const std::size_t behind = page->size_ - rank - 1;
  PackedBlock* const at = page->blocks() + rank;
  std::uint16_t* const place = page->offsets() + rank;
  std::memmove(at, at + 1, behind * sizeof *at);
  std::memmove(place, place + 1, behind * sizeof *place);
  if (--page->size_ == 0) return page.reset();
  if (page->capacity_ > 8 && page->size_ * 4u < page->capacity_) resize(page, page->capacity_ / 2);
}

}  // namespace cmt::heap
