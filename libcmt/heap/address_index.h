#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "libcmt/heap/block_page.h"
#include "libcmt/heap/placed_block.h"

namespace cmt::heap {

/// The live blocks by address: adds and removes a block, and tells its neighbours.
///
/// An ordered map costs some 140 to 200 ns an operation, for a search through a tree whose nodes lie anywhere. But
/// addresses are anything but arbitrary: allocators pack blocks into pages. So the address itself is the way:
///
///     address  =  region (2 MiB) | page (4 KiB) | the rest
///
/// A region holds a pointer for each of its 512 pages, and a bitmap of those on which a block begins. A page holds its
/// blocks (block_page.h), sorted by their exact addresses: nothing is assumed of alignment, so traces of allocators
/// that place blocks at every byte are as good as others. A neighbour is the entry beside, or the last or first entry
/// of the nearest page in the bitmap, or of the nearest region in the map of regions. The map is searched only where a
/// heap of many regions has its edges; the 64 regions used last are found through a table.
///
/// Memory: 26 bytes a block, at most half of them again as reserve, and 4 KiB a region. A size or a slop of 4 GiB or
/// more is kept aside.
class AddressIndex {
 public:
  AddressIndex() = default;
  AddressIndex(const AddressIndex&) = delete;
  AddressIndex& operator=(const AddressIndex&) = delete;

  std::size_t size() const { return size_; }

  /// Adds a block and returns it with its neighbours. Nothing, and nothing changes, if a block begins there already.
  std::optional<Neighbourhood> insert(const PlacedBlock& block);

  /// Removes the block that begins at an address; returns it with its neighbours, or nothing where there is none.
  std::optional<Neighbourhood> erase(std::uint64_t address);

  /// Calls `visit` with every block, by rising address.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [number, region] : regions_) {
      for (std::size_t page = 0; page < region_pages; ++page) {
        if (page + 4 < region_pages) __builtin_prefetch(region->pages[page + 4].get());
        if (page + 2 < region_pages && region->pages[page + 2]) region->pages[page + 2]->prefetch();
        if (!region->pages[page]) continue;
        const std::size_t blocks = region->pages[page]->size();
        for (std::size_t rank = 0; rank < blocks; ++rank) {
          PlacedBlock block;
          unpack(block, *region, page, rank);
          visit(block);
        }
      }
    }
  }

 private:
  static constexpr int page_shift = 12;
  static constexpr std::uint64_t page_size = std::uint64_t{1} << page_shift;
  static constexpr int region_shift = 21;
  static constexpr std::size_t region_pages = std::size_t{1} << (region_shift - page_shift);

  struct Region {
    std::uint64_t number = 0;
    std::array<std::uint64_t, region_pages / 64> used{};  ///< a bit for every page that is not null
    std::array<BlockPage::Pointer, region_pages> pages;
  };
  using Regions = std::map<std::uint64_t, std::unique_ptr<Region>>;

  /// What a PackedBlock cannot hold.
  struct Large {
    std::uint64_t size = 0;
    std::uint64_t slop = 0;
  };
  static constexpr std::uint32_t kept_aside = ~std::uint32_t{0};

  /// The block at a rank. It is written field by field where it is wanted: a copy would wait for these writes.
  [[gnu::always_inline]] void unpack(PlacedBlock& block, const Region& region, std::size_t page,
                                     std::size_t rank) const {
    const BlockPage& blocks = *region.pages[page];
    const PackedBlock& packed = blocks.block(rank);
    block.address = (region.number << region_shift | std::uint64_t{page} << page_shift) + blocks.offset(rank);
    block.size = packed.size;
    block.born = packed.born;
    block.tag = packed.tag;
    block.slop = packed.slop;
    if (packed.size == kept_aside) recall(block);
  }
  void recall(PlacedBlock& block) const;
  PackedBlock pack(const PlacedBlock& block);
  Region* find_region(std::uint64_t number);
  Region& make_region(std::uint64_t number);
  void drop_page(Region& region, std::size_t page);
  void unpack_last(PlacedBlock& block, const Region& region, std::size_t page) const {
    unpack(block, region, page, region.pages[page]->size() - 1);
  }
  void find_prev(PlacedBlock& block, const Region& region, std::size_t page, std::size_t rank) const;
  void find_next(PlacedBlock& block, const Region& region, std::size_t page, std::size_t rank) const;

  Regions regions_;
  std::array<Region*, 64> recent_{};
  std::map<std::uint64_t, Large> large_;  // by address
  std::size_t size_ = 0;
};

}  // namespace cmt::heap
