#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "heap/block_page.h"
#include "heap/placed_block.h"

namespace cmt::heap {

/// The live blocks by address: adds and removes a block, and tells its neighbours.
///
/// An ordered map costs some 140 to 200 ns an operation, for a search through a tree whose nodes lie anywhere. But
/// addresses are anything but arbitrary: allocators pack blocks into pages. So the address itself is the way:
///
///     address  =  region (2 MiB) | page (4 KiB) | the rest
///
/// A region holds a pointer for each of its 512 pages, and a bitmap of those on which a block begins. A page holds its
/// blocks, sorted by their exact addresses: nothing is assumed of alignment, so traces of allocators that place blocks
/// at every byte are as good as others. A neighbour is the entry beside, or the last or first entry of the nearest page
/// in the bitmap, or of the nearest region in the map of regions. The map is searched only where a heap of many regions
/// has its edges; the 64 regions used last are found through a table.
///
/// Memory: 32 bytes a block, at most half of them again as reserve, and 4 KiB a region.
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
      for (const BlockPage::Pointer& page : region->pages) {
        if (!page) continue;
        for (const PlacedBlock& block : page->blocks()) visit(block);
      }
    }
  }

 private:
  static constexpr int page_shift = 12;
  static constexpr int region_shift = 21;
  static constexpr std::size_t region_pages = std::size_t{1} << (region_shift - page_shift);

  struct Region {
    std::uint64_t number = 0;
    std::array<std::uint64_t, region_pages / 64> used{};  ///< a bit for every page that is not null
    std::array<BlockPage::Pointer, region_pages> pages;
  };
  using Regions = std::map<std::uint64_t, std::unique_ptr<Region>>;

  Region* find_region(std::uint64_t number);
  Region& make_region(std::uint64_t number);
  void drop_page(Region& region, std::size_t page);
  PlacedBlock prev_of(const Region& region, std::size_t page, std::size_t rank) const;
  PlacedBlock next_of(const Region& region, std::size_t page, std::size_t rank) const;

  Regions regions_;
  std::array<Region*, 64> recent_{};
  std::size_t size_ = 0;
};

}  // namespace cmt::heap
