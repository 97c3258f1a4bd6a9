#include "overhead/live_walks.h"

#include <algorithm>
#include <array>

namespace cmt::overhead {

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

/// The holdings of the groups that a block is in.
using Groups = std::array<Holding*, 3>;

/// Shares a page among the blocks that are on it.
void add_page(const std::vector<Groups>& blocks, std::uint64_t page_size, std::uint64_t used_bytes) {
  const std::uint64_t unused = page_size - std::min(used_bytes, page_size);
  for (const Groups& groups : blocks) {
    for (Holding* const holding : groups) {
      holding->page_bytes += page_size / blocks.size();
      holding->unused_bytes += unused / blocks.size();
    }
  }
  for (std::size_t way = 0; !blocks.empty() && way < Groups().size(); ++way) {
    Holding* const first = blocks.front()[way];
    const auto is_same = [&](const Groups& other) { return other[way] == first; };
    if (std::all_of(blocks.begin(), blocks.end(), is_same)) first->sole_bytes += page_size;
  }
}

}  // namespace

Holders find_holders(const heap::AddressIndex& live, int page_shift, std::uint64_t allocated_bytes) {
  const std::uint64_t page_size = std::uint64_t{1} << page_shift;
  Holders holders;
  std::uint64_t page = ~std::uint64_t{0};
  std::uint64_t used_bytes = 0;  // of `page`
  std::vector<Groups> on_page;
  const auto begin_page = [&](std::uint64_t next, std::uint64_t used_before) {
    add_page(on_page, page_size, used_bytes);
    on_page.clear();
    page = next;
    used_bytes = used_before;
  };
  live.for_each([&](const PlacedBlock& block) {
    const std::uint64_t first = block.address >> page_shift, last = block.last() >> page_shift;
    const Groups groups{&holders.by_size[SizeClasses::index(block.size)],
                        &holders.by_age[Doublings::index(allocated_bytes - block.born)],
                        &holders.by_kind[static_cast<std::size_t>(block.kind)]};
    if (first != page) begin_page(first, 0);
    on_page.push_back(groups);
    const std::uint64_t to_border = page_size - block.address % page_size;
    used_bytes += std::min(block.size, to_border);
    const std::uint64_t between = last > first ? (last - first - 1) * page_size : 0;
    for (Holding* const holding : groups) {
      ++holding->blocks;
      holding->live_bytes += block.size;
      holding->page_bytes += between;
      holding->sole_bytes += between;
    }
    if (last == first) return;
    begin_page(last, block.size - to_border - between);
    on_page.push_back(groups);
  });
  begin_page(0, 0);
  return holders;
}

}  // namespace cmt::overhead
