// The pages and regions of the index of addresses: how they grow, shrink, and find the nearest block.

#include "libcmt/heap/address_index.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <new>
#include <utility>

namespace cmt::heap {

/// The next capacity. Most blocks that are alone on their page stay alone; after a second block mostly more blocks
/// follow.
template <class Packed>
std::size_t BlockPage<Packed>::larger(std::size_t capacity) {
  if (capacity < 4) return 4;
  return capacity < 16 ? capacity * 2 : capacity + capacity / 4;
}

template <class Packed>
void BlockPage<Packed>::resize(Pointer& page, std::size_t capacity) {
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

template <class Packed>
Packed& BlockPage<Packed>::insert(Pointer& page, std::size_t rank, std::uint64_t offset) {
  if (!page) resize(page, 1);
  if (page->size_ == page->capacity_) resize(page, larger(page->capacity_));
  assert(rank <= page->size_ && offset <= 0xffff);
  assert(rank == 0 || page->offset(rank - 1) < offset);
  assert(rank == page->size_ || offset < page->offset(rank));
  const std::size_t after = page->size_ - rank;
  Packed* const at = page->blocks() + rank;
  std::uint16_t* const offset_at = page->offsets() + rank;
  std::memmove(at + 1, at, after * sizeof *at);
  std::memmove(offset_at + 1, offset_at, after * sizeof *offset_at);
  *offset_at = static_cast<std::uint16_t>(offset);
  ++page->size_;
  return *at;
}

template <class Packed>
void BlockPage<Packed>::erase(Pointer& page, std::size_t rank) {
  assert(rank < page->size_);
  const std::size_t after = page->size_ - rank - 1;
  Packed* const at = page->blocks() + rank;
  std::uint16_t* const offset_at = page->offsets() + rank;
  std::memmove(at, at + 1, after * sizeof *at);
  std::memmove(offset_at, offset_at + 1, after * sizeof *offset_at);
  if (--page->size_ == 0) return page.reset();
  const std::uint32_t share = page->capacity_ > 8 ? 4 : 2;
  if (page->size_ * share < page->capacity_) resize(page, page->capacity_ / 2);
}

namespace {

constexpr std::size_t none = RegionPages<PackedTag>::none;

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

}  // namespace

template <class Packed>
auto RegionPages<Packed>::at_or_above(std::size_t number) const -> typename std::vector<Numbered>::iterator {
  return std::lower_bound(few_->begin(), few_->end(), number,
                          [](const Numbered& each, std::size_t wanted) { return each.number < wanted; });
}

template <class Packed>
auto RegionPages<Packed>::find_few(std::size_t number) -> Pointer* {
  const auto found = at_or_above(number);
  return found != few_->end() && found->number == number ? &found->page : nullptr;
}

template <class Packed>
auto RegionPages<Packed>::add(std::size_t number) -> Pointer& {
  assert(number < count_max && find(number) == nullptr);
  if (empty()) {
    one_.number = static_cast<std::uint16_t>(number);
    return one_.page;
  }
  if (few_ && few_->size() == few_max) spread();
  if (many_) {
    many_->used[number / 64] |= std::uint64_t{1} << (number % 64);
    ++many_->count;
    return many_->pages[number];
  }
  if (!few_) {
    few_ = std::make_unique<std::vector<Numbered>>();
    few_->push_back(std::move(one_));
  }
  return few_->insert(at_or_above(number), {nullptr, static_cast<std::uint16_t>(number)})->page;
}

template <class Packed>
void RegionPages<Packed>::remove(std::size_t number) {
  if (many_) {
    many_->used[number / 64] &= ~(std::uint64_t{1} << (number % 64));
    assert(many_->count != 0 && !many_->pages[number]);
    if (--many_->count < many_min) gather();
  } else if (few_) {
    assert(find_few(number) != nullptr);
    few_->erase(at_or_above(number));
    if (few_->size() * 2 < few_->capacity()) few_->shrink_to_fit();
    if (few_->size() > 1) return;
    one_ = std::move(few_->front());
    few_.reset();
  }
}

/// Makes the array a table.
template <class Packed>
void RegionPages<Packed>::spread() {
  const auto few = std::move(few_);
  many_ = std::make_unique<Table>();
  for (Numbered& each : *few) add(each.number) = std::move(each.page);
}

/// Makes the table an array.
template <class Packed>
void RegionPages<Packed>::gather() {
  const auto many = std::move(many_);
  few_ = std::make_unique<std::vector<Numbered>>();
  for (std::size_t number = 0; number < count_max; ++number) {
    if (many->pages[number]) few_->push_back({std::move(many->pages[number]), static_cast<std::uint16_t>(number)});
  }
}

template <class Packed>
std::size_t RegionPages<Packed>::last_below(std::size_t end) const {
  if (many_) return last_bit(many_->used, end);
  if (!few_) return one_.page && one_.number < end ? one_.number : none;
  const auto above = at_or_above(end);
  return above == few_->begin() ? none : std::prev(above)->number;
}

template <class Packed>
std::size_t RegionPages<Packed>::first_from(std::size_t begin) const {
  if (many_) return first_bit(many_->used, begin);
  if (!few_) return one_.page && one_.number >= begin ? one_.number : none;
  const auto found = at_or_above(begin);
  return found == few_->end() ? none : found->number;
}

namespace {

std::size_t page_in_region(std::uint64_t address, int page_shift) {
  return static_cast<std::size_t>(address >> page_shift) % RegionPages<PackedTag>::count_max;
}

}  // namespace

template <class Packed>
auto AddressIndexOf<Packed>::find_region(std::uint64_t number) -> Region* {
  Region*& recently = recent(number);
  if (recently != nullptr && recently->first == number) return recently;
  const auto found = regions_.find(number);
  if (found == regions_.end()) return nullptr;
  return recently = &*found;
}

template <class Packed>
auto AddressIndexOf<Packed>::make_region(std::uint64_t number) -> Region& {
  if (Region* region = find_region(number)) return *region;
  if (regions_.size() * 2 >= recent_.size()) recent_.assign(recent_.size() * 2, nullptr);
  assert(std::has_single_bit(recent_.size()) && regions_.size() * 2 < recent_.size());
  return *regions_.try_emplace(number).first;
}

/// Removes a region without pages.
template <class Packed>
void AddressIndexOf<Packed>::drop_if_empty(Region& region) {
  if (!region.second.empty()) return;
  recent(region.first) = nullptr;
  regions_.erase(region.first);
}

template <class Packed>
void AddressIndexOf<Packed>::unpack_last(Neighbour& block, const Region& region, std::size_t page) const {
  assert(region.second.find(page) != nullptr);
  const Page& blocks = *region.second.find(page);
  unpack(block, region, page, blocks, blocks.size() - 1);
}

template <class Packed>
void AddressIndexOf<Packed>::unpack_first(Neighbour& block, const Region& region, std::size_t page) const {
  unpack(block, region, page, *region.second.find(page), 0);
}

/// The last block on the pages below one.
template <class Packed>
void AddressIndexOf<Packed>::find_below(Neighbour& block, const Region& region, std::size_t page) const {
  block.address = 0;
  const std::size_t below = region.second.last_below(page);
  if (below != none) return unpack_last(block, region, below);
  const auto here = regions_.find(region.first);
  if (here == regions_.begin()) return;
  const Region& other = *std::prev(here);
  unpack_last(block, other, other.second.last_below(Pages::count_max));
}

/// The first block on the pages above one.
template <class Packed>
void AddressIndexOf<Packed>::find_above(Neighbour& block, const Region& region, std::size_t page) const {
  block.address = 0;
  const std::size_t above = region.second.first_from(page + 1);
  if (above != none) return unpack_first(block, region, above);
  const auto next = regions_.upper_bound(region.first);
  if (next == regions_.end()) return;
  unpack_first(block, *next, next->second.first_from(0));
}

template <class Packed>
void AddressIndexOf<Packed>::pack(Packed& packed, const PlacedBlock& block) {
  packed.pack(block);
  if (Packed::has_room_for(block)) return;
  packed.size = kept_aside;
  large_[block.address] = {block.size, block.slop, block.tag};
}

template <class Packed>
void AddressIndexOf<Packed>::load_large(PlacedBlock& block) const {
  const Large& large = large_.at(block.address);
  block.size = large.size;
  block.slop = large.slop;
  block.tag = large.tag;
}

template <class Packed>
void AddressIndexOf<Packed>::load_large(Neighbour& block) const {
  const Large& large = large_.at(block.address);
  block.size = large.size;
  block.tag = large.tag;
}

template <class Packed>
bool AddressIndexOf<Packed>::insert(Neighbourhood& place) {
  const std::uint64_t address = place.block.address;
  Region& region = make_region(address >> region_shift);
  const std::size_t page = page_in_region(address, page_shift);
  const std::uint64_t offset = address % page_size;
  typename Page::Pointer* const at = region.second.find(page);
  const Page* const blocks = at ? at->get() : nullptr;
  const std::size_t rank = blocks ? blocks->rank(offset) : 0;
  if (blocks && blocks->holds(rank, offset)) return false;
  find_prev(place.prev, region, page, blocks, rank);
  find_next(place.next, region, page, blocks, rank);
  pack(Page::insert(at ? *at : region.second.add(page), rank, offset), place.block);
  ++size_;
  return true;
}

template <class Packed>
bool AddressIndexOf<Packed>::erase(std::uint64_t address, Neighbourhood& place) {
  Region* region = find_region(address >> region_shift);
  if (region == nullptr) return false;
  const std::size_t page = page_in_region(address, page_shift);
  typename Page::Pointer* const at = region->second.find(page);
  if (at == nullptr) return false;
  typename Page::Pointer& blocks = *at;
  const std::size_t rank = blocks->rank(address % page_size);
  if (!blocks->holds(rank, address % page_size)) return false;
  unpack(place.block, *region, page, *blocks, rank);
  find_prev(place.prev, *region, page, blocks.get(), rank);
  find_next(place.next, *region, page, blocks.get(), rank + 1);
  remove(*region, page, blocks, rank);
  return true;
}

/// Removes the block at a rank, and its page and region with the last block.
template <class Packed>
void AddressIndexOf<Packed>::remove(Region& region, std::size_t page, typename Page::Pointer& blocks,
                                    std::size_t rank) {
  if (blocks->block(rank).size == kept_aside) {
    large_.erase((region.first << region_shift | std::uint64_t{page} << page_shift) + blocks->offset(rank));
  }
  assert(size_ != 0);
  Page::erase(blocks, rank);
  --size_;
  if (blocks) return;
  region.second.remove(page);
  drop_if_empty(region);
}

template <class Packed>
std::uint64_t AddressIndexOf<Packed>::insert_apart(const PlacedBlock& block) {
  Region& region = make_region(block.address >> region_shift);
  const std::size_t page = page_in_region(block.address, page_shift);
  const std::uint64_t offset = block.address % page_size;
  typename Page::Pointer* const at = region.second.find(page);
  const Page* const blocks = at ? at->get() : nullptr;
  const std::size_t rank = blocks ? blocks->rank(offset) : 0;
  if (blocks && blocks->holds(rank, offset)) return block.address;
  Neighbour prev, next;
  find_prev(prev, region, page, blocks, rank);
  // A block after this one can only overlap it if it begins on this page, or on a later page that the new block
  // reaches.
  const bool may_reach = (blocks && rank < blocks->size()) || (block.last() ^ block.address) >> page_shift != 0;
  if (may_reach) find_next(next, region, page, blocks, rank);
  const bool is_on_prev = prev.address != 0 && prev.last() >= block.address;
  if (is_on_prev || (next.address != 0 && next.address <= block.last())) {
    drop_if_empty(region);
    return is_on_prev ? prev.address : next.address;
  }
  pack(Page::insert(at ? *at : region.second.add(page), rank, offset), block);
  ++size_;
  return 0;
}

template <class Packed>
bool AddressIndexOf<Packed>::take(std::uint64_t address, PlacedBlock& block) {
  Region* const region = find_region(address >> region_shift);
  const std::size_t page = page_in_region(address, page_shift);
  typename Page::Pointer* const blocks = region ? region->second.find(page) : nullptr;
  if (blocks == nullptr) return false;
  const std::size_t rank = (*blocks)->rank(address % page_size);
  if (!(*blocks)->holds(rank, address % page_size)) return false;
  unpack(block, *region, page, **blocks, rank);
  remove(*region, page, *blocks, rank);
  return true;
}

template class AddressIndexOf<PackedBlock>;
template class AddressIndexOf<PackedTag>;

}  // namespace cmt::heap
