#include "libcmt/heap/address_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

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
  std::uint16_t* const offset_at = page->offsets() + rank;
  std::memmove(at + 1, at, behind * sizeof *at);
  std::memmove(offset_at + 1, offset_at, behind * sizeof *offset_at);
  *at = block;
  *offset_at = static_cast<std::uint16_t>(offset);
  ++page->size_;
}

void BlockPage::erase(Pointer& page, std::size_t rank) {
  const std::size_t behind = page->size_ - rank - 1;
  PackedBlock* const at = page->blocks() + rank;
  std::uint16_t* const offset_at = page->offsets() + rank;
  std::memmove(at, at + 1, behind * sizeof *at);
  std::memmove(offset_at, offset_at + 1, behind * sizeof *offset_at);
  if (--page->size_ == 0) return page.reset();
  if (page->capacity_ > 8 && page->size_ * 4u < page->capacity_) resize(page, page->capacity_ / 2);
}

namespace {

constexpr std::size_t none = ~std::size_t{0};

/// The last bit that is set below `end`, or none.
template <std::size_t words>
std::size_t last_bit(const std::array<std::uint64_t, words>& bits, std::size_t end) {
  if (end == 0) return none;
  std::size_t word = (end - 1) / 64;
  std::uint64_t left = bits[word] & (~std::uint64_t{0} >> (63 - (end - 1) % 64));
  while (left == 0) {
    if (word == 0) return none;
    left = bits[--word];
  }
  return word * 64 + 63 - static_cast<std::size_t>(std::countl_zero(left));
}

/// The first bit that is set at `begin` or above, or none.
template <std::size_t words>
std::size_t first_bit(const std::array<std::uint64_t, words>& bits, std::size_t begin) {
  std::size_t word = begin / 64;
  if (word == words) return none;
  std::uint64_t left = bits[word] & (~std::uint64_t{0} << (begin % 64));
  while (left == 0) {
    if (++word == words) return none;
    left = bits[word];
  }
  return word * 64 + static_cast<std::size_t>(std::countr_zero(left));
}

std::size_t page_in_region(std::uint64_t address, int page_shift, std::size_t region_pages) {
  return static_cast<std::size_t>(address >> page_shift) % region_pages;
}

}  // namespace

AddressIndex::Region* AddressIndex::find_region(std::uint64_t number) {
  Region*& recent = recent_[number % recent_.size()];
  if (recent != nullptr && recent->number == number) return recent;
  const auto found = regions_.find(number);
  if (found == regions_.end()) return nullptr;
  return recent = found->second.get();
}

AddressIndex::Region& AddressIndex::make_region(std::uint64_t number) {
  if (Region* region = find_region(number)) return *region;
  auto region = std::make_unique<Region>();
  region->number = number;
  return *regions_.emplace(number, std::move(region)).first->second;
}

/// Removes an empty page from the bitmap, and its region with the last page.
void AddressIndex::drop_page(Region& region, std::size_t page) {
  region.used[page / 64] &= ~(std::uint64_t{1} << (page % 64));
  for (const std::uint64_t word : region.used) {
    if (word != 0) return;
  }
  recent_[region.number % recent_.size()] = nullptr;
  regions_.erase(region.number);
}

/// The block before a rank on a page; the page itself may be empty.
void AddressIndex::find_prev(PlacedBlock& block, const Region& region, std::size_t page, std::size_t rank) const {
  if (rank > 0) return unpack(block, region, page, rank - 1);
  const std::size_t below = last_bit(region.used, page);
  if (below != none) return unpack_last(block, region, below);
  const auto here = regions_.find(region.number);
  if (here == regions_.begin()) return;
  const Region& other = *std::prev(here)->second;
  unpack_last(block, other, last_bit(other.used, region_pages));
}

/// The block at or behind a rank on a page; the page itself may be empty.
void AddressIndex::find_next(PlacedBlock& block, const Region& region, std::size_t page, std::size_t rank) const {
  if (region.pages[page] && rank < region.pages[page]->size()) return unpack(block, region, page, rank);
  const std::size_t above = first_bit(region.used, page + 1);
  if (above != none) return unpack(block, region, above, 0);
  const auto behind = regions_.upper_bound(region.number);
  if (behind == regions_.end()) return;
  const Region& other = *behind->second;
  unpack(block, other, first_bit(other.used, 0), 0);
}

PackedBlock AddressIndex::pack(const PlacedBlock& block) {
  const PackedBlock packed{block.born, block.tag, static_cast<std::uint32_t>(block.size),
                           static_cast<std::uint32_t>(block.slop)};
  if (block.size < kept_aside && block.slop < kept_aside) return packed;
  large_[block.address] = {block.size, block.slop};
  return {block.born, block.tag, kept_aside, 0};
}

void AddressIndex::load_large(PlacedBlock& block) const {
  const Large& large = large_.at(block.address);
  block.size = large.size;
  block.slop = large.slop;
}

std::optional<Neighbourhood> AddressIndex::insert(const PlacedBlock& block) {
  Region& region = make_region(block.address >> region_shift);
  const std::size_t page = page_in_region(block.address, page_shift, region_pages);
  const std::uint64_t offset = block.address % page_size;
  BlockPage::Pointer& blocks = region.pages[page];
  const std::size_t rank = blocks ? blocks->rank(offset) : 0;
  if (blocks && blocks->holds(rank, offset)) return std::nullopt;
  std::optional<Neighbourhood> found(std::in_place);
  found->block = block;
  find_prev(found->prev, region, page, rank);
  find_next(found->next, region, page, rank);
  BlockPage::insert(blocks, rank, offset, pack(block));
  region.used[page / 64] |= std::uint64_t{1} << (page % 64);
  ++size_;
  return found;
}

std::optional<Neighbourhood> AddressIndex::erase(std::uint64_t address) {
  Region* region = find_region(address >> region_shift);
  if (region == nullptr) return std::nullopt;
  const std::size_t page = page_in_region(address, page_shift, region_pages);
  BlockPage::Pointer& blocks = region->pages[page];
  if (!blocks) return std::nullopt;
  const std::size_t rank = blocks->rank(address % page_size);
  if (!blocks->holds(rank, address % page_size)) return std::nullopt;
  std::optional<Neighbourhood> found(std::in_place);
  unpack(found->block, *region, page, rank);
  find_prev(found->prev, *region, page, rank);
  find_next(found->next, *region, page, rank + 1);
  if (blocks->block(rank).size == kept_aside) large_.erase(address);
  BlockPage::erase(blocks, rank);
  --size_;
  if (!blocks) drop_page(*region, page);
  return found;
}

}  // namespace cmt::heap
