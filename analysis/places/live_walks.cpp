// Finds pinned pages and holders in one walk over the live blocks each.
#include "analysis/places/live_walks.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "analysis/held_pages/page_walk.h"

namespace cmt::analysis {

using heap::PlacedBlock;

PinnedPages find_pins(const heap::AddressIndex& live, int page_shift, std::uint64_t old_before) {
  const std::uint64_t page_size = std::uint64_t{1} << page_shift;
  PinnedPages found;
  OldBlocks& old = found.old;
  PlacedBlock previous{};
  std::uint64_t page = ~std::uint64_t{0};      // of the last block's end
  std::uint64_t old_page = ~std::uint64_t{0};  // of the last old block's end
  std::uint64_t on_page = 0;                   // blocks seen on `page`
  const auto is_old = [&](const PlacedBlock& block) { return block.born < old_before; };
  const auto close_page = [&] {
    if (on_page == 1 && is_old(previous) && previous.size <= page_size / 8) found.pins.push_back(previous);
    on_page = 0;
  };
  live.for_each([&](const PlacedBlock& block) {
    const std::uint64_t first = block.address >> page_shift, last = block.last() >> page_shift;
    if (first != page) close_page();
    const std::uint64_t gap = block.address - previous.address - previous.size;
    if (gap <= small_gap_max && is_old(previous)) old.packed_bytes += gap;
    previous = block;
    ++on_page;
    page = last;
    if (last != first) {
      close_page();
      on_page = 1;
    }
    if (!is_old(block)) return;
    old.bytes += block.size;
    old.pages += last - first + (first == old_page ? 0 : 1);
    old_page = last;
  });
  close_page();
  old.pinned_pages = found.pins.size();
  old.packed_bytes += old.bytes;
  const std::uint64_t packed_pages = old.packed_bytes / page_size + (old.packed_bytes % page_size != 0);
  old.separable_pages = old.pages > packed_pages ? old.pages - packed_pages : 0;
  return found;
}

namespace {

/// Visits the pages and shares them among the groups of their blocks.
class HoldingCounter {
 public:
  /// The holdings of the groups that a block is in: by size, by age and by kind.
  using Mark = std::array<Holding*, 3>;

  HoldingCounter(Holders& holders, int page_shift, std::uint64_t allocated_bytes)
      : holders_(holders), page_size_(std::uint64_t{1} << page_shift), allocated_bytes_(allocated_bytes) {}

  Mark begin_block(const PlacedBlock& block) {
    const Mark groups{&holders_.by_size[SizeClasses::index(block.size)],
                      &holders_.by_age[Doublings::index(allocated_bytes_ - block.born)],
                      &holders_.by_kind[static_cast<std::size_t>(block.kind)]};
    for (Holding* const holding : groups) {
      ++holding->blocks;
      holding->live_bytes += block.size;
    }
    return groups;
  }

  void inner_pages(const Mark& groups, std::uint64_t bytes) {
    for (Holding* const holding : groups) {
      holding->page_bytes += bytes;
      holding->sole_bytes += bytes;
    }
  }

  void page(const std::vector<analysis::OnPage<Mark>>& blocks) {
    assert(!blocks.empty());
    std::uint64_t used = 0;
    for (const auto& each : blocks) used += each.bytes;
    const std::uint64_t unused = page_size_ - std::min(used, page_size_);
    for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
      for (Holding* const holding : blocks[rank].mark) {
        holding->page_bytes += analysis::share_of(page_size_, blocks.size(), rank);
        holding->unused_bytes += analysis::share_of(unused, blocks.size(), rank);
      }
    }
    for (std::size_t way = 0; way < Mark().size(); ++way) {
      Holding* const first = blocks.front().mark[way];
      const auto is_same = [&](const auto& other) { return other.mark[way] == first; };
      if (std::all_of(blocks.begin(), blocks.end(), is_same)) first->sole_bytes += page_size_;
    }
  }

 private:
  Holders& holders_;
  std::uint64_t page_size_;
  std::uint64_t allocated_bytes_;
};

}  // namespace

Holders find_holders(const heap::AddressIndex& live, int page_shift, std::uint64_t allocated_bytes) {
  Holders holders;
  HoldingCounter counter(holders, page_shift, allocated_bytes);
  analysis::walk_pages(live, page_shift, counter);
  return holders;
}

}  // namespace cmt::analysis
