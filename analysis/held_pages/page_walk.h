/// Walks the pages of live blocks, for all counts of pages. A page may have many blocks, and a block many pages.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <vector>

#include "libcmt/heap/address_index.h"

namespace cmt::analysis {

/// A block on a page, as the mark that a visitor of walk_pages() made of it.
template <class Mark>
struct OnPage {
  Mark mark;
  std::uint64_t bytes = 0;  ///< of the block on this page
};

/// Walks the pages that live blocks are on, by rising address. A visitor has a type Mark and these functions:
///
///     Mark begin_block(const heap::PlacedBlock&)           for each block. The previous block's page is still open.
///
///     void page(const std::vector<OnPage<Mark>>&)          for each page on which a block begins or ends, with its
///     blocks
///
///     void inner_pages(const Mark&, std::uint64_t bytes)   for the pages between, which only this block is on
template <class Visitor>
void walk_pages(const heap::AddressIndex& live, int page_shift, Visitor& visitor) {
  using Mark = typename Visitor::Mark;
  const std::uint64_t page_size = std::uint64_t{1} << page_shift;
  std::uint64_t page = ~std::uint64_t{0};
  std::vector<OnPage<Mark>> on_page;
  const auto close_page = [&] {
    if (!on_page.empty()) visitor.page(on_page);
    on_page.clear();
  };
  live.for_each([&](const heap::PlacedBlock& block) {
    const std::uint64_t first = block.address >> page_shift, last = block.last() >> page_shift;
    const Mark mark = visitor.begin_block(block);
    if (first != page) close_page();
    const std::uint64_t to_border = page_size - block.address % page_size;
    on_page.push_back({mark, std::min(block.size, to_border)});
    page = last;
    if (last == first) return;
    close_page();
    const std::uint64_t between = (last - first - 1) * page_size;
    if (between != 0) visitor.inner_pages(mark, between);
    on_page.push_back({mark, block.size - to_border - between});
  });
  close_page();
}

/// Returns one of `count` shares of a sum. The shares add up to the sum, and differ by 1 at most.
inline std::uint64_t share_of(std::uint64_t sum, std::uint64_t count, std::uint64_t rank) {
  assert(rank < count);
  return sum / count + static_cast<std::uint64_t>(rank < sum % count);
}

}  // namespace cmt::analysis
