// The live blocks by address, with the neighbours of each: an index that uses the address itself instead of a tree.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "cmt/event.h"
#include "libcmt/prefetch.h"

namespace cmt::heap {

/// The address of a block's last byte. A block of size 0 counts as one byte, so that it is on one page like any other
/// block. A block that would pass the end of memory ends there.
inline std::uint64_t last_byte(std::uint64_t address, std::uint64_t size) {
  const std::uint64_t extent = size == 0 ? 0 : size - 1;
  return address + extent < address ? ~std::uint64_t{0} : address + extent;
}

/// A live block and its address.
struct PlacedBlock {
  std::uint64_t address = 0;  ///< 0: there is no such block
  std::uint64_t size = 0;     ///< bytes asked for
  std::uint64_t born = 0;     ///< the clock when it was made; the user chooses the clock
  Tag tag = 0;
  std::uint64_t slop = 0;  ///< usable size less the size asked for; 0 if it is not known
  Kind kind = Kind::malloc;

  std::uint64_t last() const { return last_byte(address, size); }
};

/// The nearest live block on one side of another.
struct Neighbour {
  std::uint64_t address = 0;  ///< 0: there is no such block
  std::uint64_t size = 0;
  Tag tag = 0;

  std::uint64_t last() const { return last_byte(address, size); }
};

/// A block with the nearest live ones on either side.
///
/// The index fills in the caller's struct, and the caller reads its fields one by one. To copy two fields at once, a
/// processor waits until the stores of both, and all earlier stores, have reached the cache. With two threads on one
/// trace, which store to lines that the other has read, most of the time went there.
struct Neighbourhood {
  PlacedBlock block;
  Neighbour prev;
  Neighbour next;

  /// A neighbour that the block overlaps, or nullptr.
  const Neighbour* overlapped() const {
    if (next.address != 0 && next.address <= block.last()) return &next;
    return prev.address != 0 && prev.last() >= block.address ? &prev : nullptr;
  }
};

/// Bytes from the end of one block, by its requested size, to the begin of the next. Negative if they overlap.
template <class Low, class High>
std::int64_t gap(const Low& low, const High& high) {
  return static_cast<std::int64_t>(high.address - low.address - low.size);
}

/// The number of pages of 2^shift bytes on which a block is alone. Memory in use grows by this number when the block is
/// made, and shrinks by it when the block ends. Blocks do not overlap, so only the first page can be shared with the
/// block before, and only the last page with the block after.
inline std::uint64_t own_pages(const Neighbourhood& found, int shift) {
  const std::uint64_t first = found.block.address >> shift;
  const std::uint64_t last = found.block.last() >> shift;
  assert(first <= last);
  std::uint64_t pages = last - first + 1;
  if (found.prev.address != 0 && found.prev.last() >> shift == first) --pages;
  if (pages > 0 && found.next.address != 0 && found.next.address >> shift == last) --pages;
  return pages;
}

struct FreePage {
  void operator()(void* page) const { std::free(page); }
};

/// A block as its page keeps it; the page also knows the address. Fields that are adjacent in a PlacedBlock are apart
/// here, or compilers would copy two at once.
struct PackedBlock {
  static constexpr std::uint64_t slop_limit = std::uint64_t{1} << 26;

  Tag tag = 0;
  std::uint32_t size = 0;
  std::uint32_t slop : 26 = 0;
  std::uint32_t kind : 6 = 0;
  std::uint64_t born = 0;

  void pack(const PlacedBlock& block) {
    born = block.born;
    tag = block.tag;
    size = static_cast<std::uint32_t>(block.size);
    slop = static_cast<std::uint32_t>(block.slop) & (slop_limit - 1);
    kind = static_cast<std::uint32_t>(block.kind) & 63;
  }

  /// Whether all of a block is in these bits.
  static bool has_room_for(const PlacedBlock& block) {
    return block.size < ~std::uint32_t{0} && block.slop < slop_limit;
  }
  void unpack(PlacedBlock& block) const {
    block.size = size;
    block.born = born;
    block.tag = tag;
    block.slop = slop;
    block.kind = static_cast<Kind>(kind);
  }
};
static_assert(sizeof(PackedBlock) == 24 && kind_limit <= 64);

/// The packed form of a block that has only a tag and a size.
struct PackedTag {
  std::uint32_t size = 0;
  std::uint32_t tag = 0;

  void pack(const PlacedBlock& block) {
    size = static_cast<std::uint32_t>(block.size);
    tag = static_cast<std::uint32_t>(block.tag);
  }

  static bool has_room_for(const PlacedBlock& block) {
    return block.size < ~std::uint32_t{0} && block.tag <= ~std::uint32_t{0};
  }
  void unpack(PlacedBlock& block) const {
    block.size = size;
    block.tag = tag;
  }
};

/// The blocks that begin on one page of 4 KiB, sorted by address. A page has 8 bytes for itself, then 2 for the offset
/// at which each block begins. Then it has 24 bytes for each block, or 8 if only tags and sizes are kept.
///
/// A page is one allocation. It grows by a quarter (a small one to 4, 8 and 16 blocks), and shrinks when three quarters
/// are free. The functions insert() and erase() move the entries after the block. These are at most some 2 KiB if
/// blocks are 16-byte aligned and adjacent, and mostly much less. Offsets are together, so that a search reads few
/// cache lines. (Two other searches were slower: eight offsets at once, and a search without a branch. A program's next
/// block is mostly next to its last one, which the branch predictor learns.)
template <class Packed>
class BlockPage {
 public:
  using Pointer = std::unique_ptr<BlockPage, FreePage>;

  std::size_t size() const { return size_; }
  std::uint64_t offset(std::size_t rank) const { return static_cast<std::uint64_t>(offsets()[rank]); }
  const Packed& block(std::size_t rank) const { return blocks()[rank]; }

  /// How many blocks begin below an offset.
  std::size_t rank(std::uint64_t offset) const {
    const std::uint16_t* base = offsets();
    std::size_t count = size_;
    while (count > 1) {
      const std::size_t half = count / 2;
      base += base[half - 1] < offset ? half : 0;
      count -= half;
    }
    return static_cast<std::size_t>(base - offsets()) + (count == 1 && *base < offset ? 1 : 0);
  }

  bool holds(std::size_t rank, std::uint64_t at) const { return rank < size_ && offset(rank) == at; }

  /// Fetches the page into the caches, for for_each().
  void prefetch() const {
    const char* const begin = reinterpret_cast<const char*>(this);
    for (std::size_t at = 64; at < bytes(size_); at += 64) cmt::prefetch(begin + at);
  }

  /// Makes room for a block at a rank; the caller fills it in. The page may be null, and may move.
  static Packed& insert(Pointer& page, std::size_t rank, std::uint64_t offset);

  /// Removes the block at a rank. The page is null afterwards if it was the last one, and may move.
  static void erase(Pointer& page, std::size_t rank);

 private:
  static std::size_t bytes(std::size_t capacity) {
    return sizeof(BlockPage) + padded(capacity) * sizeof(std::uint16_t) + capacity * sizeof(Packed);
  }
  static std::size_t padded(std::size_t capacity) { return (capacity + 3) / 4 * 4; }  // blocks begin at words

  const std::uint16_t* offsets() const { return reinterpret_cast<const std::uint16_t*>(this + 1); }
  std::uint16_t* offsets() { return reinterpret_cast<std::uint16_t*>(this + 1); }
  const Packed* blocks() const { return reinterpret_cast<const Packed*>(offsets() + padded(capacity_)); }
  Packed* blocks() { return reinterpret_cast<Packed*>(offsets() + padded(capacity_)); }
  static std::size_t larger(std::size_t capacity);
  static void resize(Pointer& page, std::size_t capacity);

  std::uint32_t size_;
  std::uint32_t capacity_;
};

/// The pages of a region on which blocks begin, by their number in the region.
///
/// A region mostly has many pages. Then it is a table of all pages, with a bitmap of those that are there. If blocks
/// are far apart, each block would need such a table of 4 KiB. So a region keeps one page in place, and a few pages in
/// a sorted array.
template <class Packed>
class RegionPages {
 public:
  using Page = BlockPage<Packed>;
  using Pointer = typename Page::Pointer;

  static constexpr std::size_t count_max = 512;
  static constexpr std::size_t none = ~std::size_t{0};

  bool empty() const { return !many_ && !few_ && !one_.page; }

  /// The page of a number, or null if there is none.
  Pointer* find(std::size_t number) {
    if (many_) return many_->pages[number] ? &many_->pages[number] : nullptr;
    if (few_) return find_few(number);
    return one_.page && one_.number == number ? &one_.page : nullptr;
  }
  const Page* find(std::size_t number) const {
    const Pointer* const page = const_cast<RegionPages*>(this)->find(number);
    return page ? page->get() : nullptr;
  }

  /// Fetch the memory that find() reads, and the memory of the page's offsets. To be called one after the other, some
  /// time before find().
  void prefetch(std::size_t number) const {
    if (many_) cmt::prefetch(&many_->pages[number]);
  }
  void prefetch_page(std::size_t number) const {
    if (!many_) return;
    const char* const page = reinterpret_cast<const char*>(many_->pages[number].get());
    if (page == nullptr) return;
    cmt::prefetch(page);
    cmt::prefetch(page + 64);
  }

  /// Adds a number; the caller makes its page.
  Pointer& add(std::size_t number);

  /// Removes a number whose page is gone.
  void remove(std::size_t number);

  /// The last number below `end`, and the first number at `begin` or above; `none` if there is no such number.
  std::size_t last_below(std::size_t end) const;
  std::size_t first_from(std::size_t begin) const;

  /// Calls `visit` with every number and page, by rising number.
  template <class Visit>
  void for_each(Visit visit) const {
    if (one_.page) visit(one_.number, *one_.page);
    if (few_) {
      for (const Numbered& each : *few_) visit(each.number, *each.page);
    }
    for (std::size_t number = 0; many_ && number < count_max; ++number) {
      const auto& pages = many_->pages;
      if (number + 4 < count_max) cmt::prefetch(pages[number + 4].get());
      if (number + 2 < count_max && pages[number + 2]) pages[number + 2]->prefetch();
      if (pages[number]) visit(number, *pages[number]);
    }
  }

 private:
  static constexpr std::size_t few_max = 48, many_min = 32;

  struct Numbered {
    Pointer page;
    std::uint16_t number = 0;
  };
  struct Table {
    std::array<std::uint64_t, count_max / 64> used{};  ///< a bit for every number that was added
    std::array<Pointer, count_max> pages;
    std::size_t count = 0;
  };

  typename std::vector<Numbered>::iterator at_or_above(std::size_t number) const;
  Pointer* find_few(std::size_t number);
  void spread();
  void gather();

  Numbered one_;
  std::unique_ptr<std::vector<Numbered>> few_;
  std::unique_ptr<Table> many_;
};

/// The live blocks by address. Adding and removing a block return its neighbours.
///
/// An ordered map costs some 140 to 200 ns an operation, because it searches a tree whose nodes are scattered over
/// memory. But allocators pack blocks into pages, so the address itself can lead to the block:
///
///     address  =  region (2 MiB) | page (4 KiB) | offset
///
/// A region finds its pages (RegionPages). A page holds its blocks (BlockPage), sorted by their exact addresses, of
/// whatever alignment. A neighbour is the adjacent entry. At the edge of a page, the neighbour is the last or first
/// entry of the nearest page. This page is in the same region, or in the nearest region in the map of regions. The map
/// is searched only at the edges of a region. A table by number finds the regions that were used last; it has room for
/// twice as many regions as there are.
///
/// Memory: 26 bytes a block, mostly at most a quarter of them again as reserve, and 4 KiB for a region of many pages.
/// Isolated blocks cost 130 bytes each, and no block more than 180. Sizes of 4 GiB or more and slops of 64 MiB or more
/// are in a map of their own.
template <class Packed>
class AddressIndexOf {
 public:
  AddressIndexOf() = default;
  AddressIndexOf(const AddressIndexOf&) = delete;
  AddressIndexOf& operator=(const AddressIndexOf&) = delete;

  std::size_t size() const { return size_; }

  /// Adds `place.block` and fills in its neighbours. Returns false, and changes nothing, if a block begins there.
  bool insert(Neighbourhood& place);

  /// Removes the block that begins at an address, and fills in the block and its neighbours. Returns false if no block
  /// begins there.
  bool erase(std::uint64_t address, Neighbourhood& place);

  /// Adds a block unless it overlaps another one. Returns the address of the other block, or 0 if the block was added.
  /// Half the cost of insert().
  std::uint64_t insert_apart(const PlacedBlock& block);

  /// Removes the block that begins at an address and returns it in `block`. Returns false if no block begins there.
  /// Half the cost of erase().
  bool take(std::uint64_t address, PlacedBlock& block);

  /// Whether nearly all blocks are in the cache. Then a prefetch costs more than it saves, some 7 ns an event.
  bool is_cached() const { return size_ < cached_max; }

  /// Fetch the memory that the calls above read at an address. To be called one after the other, some time before them.
  /// They do nothing if is_cached().
  void prefetch_page(std::uint64_t address) const {
    if (is_cached()) return;
    if (const Region* const region = recent_region(address >> region_shift))
      region->second.prefetch(static_cast<std::size_t>(address >> page_shift) % Pages::count_max);
  }
  void prefetch_blocks(std::uint64_t address) const {
    if (is_cached()) return;
    if (const Region* const region = recent_region(address >> region_shift))
      region->second.prefetch_page(static_cast<std::size_t>(address >> page_shift) % Pages::count_max);
  }

  /// Calls `visit` with every block, by rising address.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Region& region : regions_) {
      region.second.for_each([&](std::size_t page, const Page& blocks) {
        const std::size_t count = blocks.size();
        for (std::size_t rank = 0; rank < count; ++rank) {
          PlacedBlock block;
          unpack(block, region, page, blocks, rank);
          visit(block);
        }
      });
    }
  }

 private:
  using Page = BlockPage<Packed>;
  using Pages = RegionPages<Packed>;

  static constexpr int page_shift = 12;
  static constexpr std::uint64_t page_size = std::uint64_t{1} << page_shift;
  static constexpr int region_shift = 21;
  static constexpr std::size_t cached_max = std::size_t{1} << 18;  // blocks
  static_assert(Pages::count_max == std::size_t{1} << (region_shift - page_shift));

  using Regions = std::map<std::uint64_t, Pages>;
  using Region = typename Regions::value_type;

  /// The fields of a block that do not fit the packed form. The packed size is kept_aside then.
  struct Large {
    std::uint64_t size = 0;
    std::uint64_t slop = 0;
    Tag tag = 0;
  };
  static constexpr std::uint32_t kept_aside = ~std::uint32_t{0};

  static std::uint64_t address_at(const Region& region, std::size_t page, const Page& blocks, std::size_t rank) {
    return (region.first << region_shift | std::uint64_t{page} << page_shift) + blocks.offset(rank);
  }
  [[gnu::always_inline]] void unpack(PlacedBlock& block, const Region& region, std::size_t page, const Page& blocks,
                                     std::size_t rank) const {
    const Packed& packed = blocks.block(rank);
    block.address = address_at(region, page, blocks, rank);
    packed.unpack(block);
    if (packed.size == kept_aside) load_large(block);
  }
  [[gnu::always_inline]] void unpack(Neighbour& block, const Region& region, std::size_t page, const Page& blocks,
                                     std::size_t rank) const {
    const Packed& packed = blocks.block(rank);
    block.address = address_at(region, page, blocks, rank);
    block.size = packed.size;
    block.tag = packed.tag;
    if (packed.size == kept_aside) load_large(block);
  }
  void load_large(PlacedBlock& block) const;
  void load_large(Neighbour& block) const;
  void pack(Packed& packed, const PlacedBlock& block);
  Region*& recent(std::uint64_t number) { return recent_[number & (recent_.size() - 1)]; }
  const Region* recent_region(std::uint64_t number) const {
    const Region* const recent = recent_[number & (recent_.size() - 1)];
    return recent != nullptr && recent->first == number ? recent : nullptr;
  }
  Region* find_region(std::uint64_t number);
  Region& make_region(std::uint64_t number);
  void drop_if_empty(Region& region);
  void remove(Region& region, std::size_t page, typename Page::Pointer& blocks, std::size_t rank);
  void unpack_last(Neighbour& block, const Region& region, std::size_t page) const;
  void unpack_first(Neighbour& block, const Region& region, std::size_t page) const;
  void find_below(Neighbour& block, const Region& region, std::size_t page) const;
  void find_above(Neighbour& block, const Region& region, std::size_t page) const;

  /// Finds the block before a rank on a page. `blocks` is null if the page is empty.
  [[gnu::always_inline]] void find_prev(Neighbour& block, const Region& region, std::size_t page, const Page* blocks,
                                        std::size_t rank) const {
    if (rank > 0)
      unpack(block, region, page, *blocks, rank - 1);
    else
      find_below(block, region, page);
  }
  /// Finds the block at or after a rank on a page. `blocks` is null if the page is empty.
  [[gnu::always_inline]] void find_next(Neighbour& block, const Region& region, std::size_t page, const Page* blocks,
                                        std::size_t rank) const {
    if (blocks != nullptr && rank < blocks->size())
      unpack(block, region, page, *blocks, rank);
    else
      find_above(block, region, page);
  }

  Regions regions_;
  std::vector<Region*> recent_ = std::vector<Region*>(64);  // a power of two
  std::map<std::uint64_t, Large> large_;                    // by address
  std::size_t size_ = 0;
};

extern template class AddressIndexOf<PackedBlock>;
extern template class AddressIndexOf<PackedTag>;

/// Keeps all fields of a PlacedBlock.
using AddressIndex = AddressIndexOf<PackedBlock>;
/// Keeps tag, address and size of each block, in 10 bytes a block instead of 26. Tags of 2^32 and more are kept apart.
using TagIndex = AddressIndexOf<PackedTag>;

}  // namespace cmt::heap
