#include "overhead/holders.h"

#include <algorithm>

namespace cmt::overhead {

HolderWalk::HolderWalk(const heap::AddressIndex& live, int page_shift, std::uint64_t allocated_bytes)
    : page_shift_(page_shift), allocated_bytes_(allocated_bytes) {
  live.for_each([this](const heap::PlacedBlock& block) { visit(block); });
  close_page();
}

/// Calls `add` with the holding of each group.
template <class Add>
void HolderWalk::for_each_group(const Groups& groups, Add add) {
  add(holders_.by_size[groups.size], &Groups::size);
  add(holders_.by_age[groups.age], &Groups::age);
  add(holders_.by_kind[groups.kind], &Groups::kind);
}

void HolderWalk::visit(const heap::PlacedBlock& block) {
  const std::uint64_t first = block.address >> page_shift_;
  const std::uint64_t last = block.last() >> page_shift_;
  const std::uint64_t page_size = std::uint64_t{1} << page_shift_;
  const Groups groups{heap::SizeClasses::index(block.size), Doublings::index(allocated_bytes_ - block.born),
                      static_cast<std::size_t>(block.kind)};
  if (first != page_) close_page();
  page_ = first;
  on_page_.push_back(groups);
  const std::uint64_t to_border = page_size - block.address % page_size;
  used_bytes_ += std::min(block.size, to_border);
  const std::uint64_t between = last > first ? (last - first - 1) * page_size : 0;
  for_each_group(groups, [&](Holding& holding, auto) {
    ++holding.blocks;
    holding.live_bytes += block.size;
    holding.page_bytes += between;
    holding.sole_bytes += between;
  });
  if (last == first) return;
  close_page();
  page_ = last;
  on_page_.push_back(groups);
  used_bytes_ = block.size - to_border - between;
}

void HolderWalk::close_page() {
  const std::uint64_t page_size = std::uint64_t{1} << page_shift_;
  const std::uint64_t unused = page_size - std::min(used_bytes_, page_size);
  for (const Groups& groups : on_page_) {
    for_each_group(groups, [&](Holding& holding, auto) {
      holding.page_bytes += page_size / on_page_.size();
      holding.unused_bytes += unused / on_page_.size();
    });
  }
  if (!on_page_.empty()) {
    const Groups& first = on_page_.front();
    for_each_group(first, [&](Holding& holding, auto group) {
      const auto is_same = [&](const Groups& other) { return other.*group == first.*group; };
      if (std::all_of(on_page_.begin(), on_page_.end(), is_same)) holding.sole_bytes += page_size;
    });
  }
  on_page_.clear();
  used_bytes_ = 0;
}

}  // namespace cmt::overhead
