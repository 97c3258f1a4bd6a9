// Finds mappings and pages, and keeps pages that lists of free blocks lead to again and again.
#include "cmtwatch/explain/memory/address_space.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace cmt::watch::explain {

namespace {
constexpr std::size_t pages_kept = 4096;  // 16 MiB
}

struct AddressSpace::KeptPage {
  std::uint64_t page = 0;  // its address; 0: none
  std::array<std::uint8_t, page_bytes> bytes;
};

AddressSpace::AddressSpace() : kept_(new KeptPage[pages_kept]) {}
AddressSpace::~AddressSpace() = default;

const process::Mapping* AddressSpace::find(std::uint64_t address) const {
  if (last_found_ < mappings_.size() && mappings_[last_found_].begin <= address && address < mappings_[last_found_].end)
    return &mappings_[last_found_];
  const auto after = std::upper_bound(mappings_.begin(), mappings_.end(), address,
                                      [](std::uint64_t at, const process::Mapping& each) { return at < each.end; });
  if (after == mappings_.end() || address < after->begin) return nullptr;
  last_found_ = static_cast<std::size_t>(after - mappings_.begin());
  return &*after;
}

std::span<const PageState> AddressSpace::states(const process::Mapping& mapping) {
  assert(&mapping >= mappings_.data() && &mapping < mappings_.data() + mappings_.size());
  states_.resize(mappings_.size());
  std::vector<PageState>& states = states_[static_cast<std::size_t>(&mapping - mappings_.data())];
  if (states.empty()) states = states_of(mapping);
  assert(states.size() == (mapping.end - mapping.begin) / page_bytes);
  return states;
}

PageState AddressSpace::page(std::uint64_t address) {
  const process::Mapping* const mapping = find(address);
  return mapping == nullptr ? PageState::absent : states(*mapping)[(address - mapping->begin) / page_bytes];
}

AddressSpace::MappedPart AddressSpace::part_at(Range range) {
  const process::Mapping* const mapping = find(range.begin);
  if (mapping == nullptr) {  // up to the next one
    const auto next = std::upper_bound(mappings_.begin(), mappings_.end(), range.begin,
                                       [](std::uint64_t at, const process::Mapping& each) { return at < each.begin; });
    return {{range.begin, next == mappings_.end() ? range.end : std::min(range.end, next->begin)}, {}};
  }
  const Range part{range.begin, std::min(range.end, mapping->end)};
  return {part, states(*mapping).subspan((part.begin - mapping->begin) / page_bytes, part.bytes() / page_bytes)};
}

std::uint64_t AddressSpace::count(Range range, PageState state) {
  range = {page_end(range.begin), page_begin(range.end)};
  std::uint64_t pages = 0;
  while (range.begin < range.end) {
    const MappedPart part = part_at(range);
    pages += static_cast<std::uint64_t>(std::count(part.states.begin(), part.states.end(), state));
    range.begin = part.range.end;
  }
  return pages * page_bytes;
}

std::uint64_t AddressSpace::resident_bytes(Range range) { return count(range, PageState::resident); }
std::uint64_t AddressSpace::swapped_bytes(Range range) { return count(range, PageState::swapped); }

const AddressSpace::KeptPage* AddressSpace::keep(std::uint64_t page) {
  KeptPage& kept = kept_[page / page_bytes % pages_kept];
  if (kept.page == page) return &kept;
  if (this->page(page) != PageState::resident) return nullptr;
  kept.page = 0;
  const std::uint64_t before = read_bytes_;
  const Piece whole{page, kept.bytes.data(), page_bytes};
  read_pieces({&whole, 1});
  if (read_bytes_ != before + page_bytes) return nullptr;
  kept.page = page;
  return &kept;
}

bool AddressSpace::read(std::uint64_t address, void* to, std::size_t bytes) {
  auto* out = static_cast<std::uint8_t*>(to);
  while (bytes != 0) {
    const std::uint64_t in_page = address % page_bytes;
    const std::size_t here = std::min<std::size_t>(bytes, page_bytes - in_page);
    const KeptPage* const kept = keep(address - in_page);
    if (kept == nullptr) return false;
    std::memcpy(out, kept->bytes.data() + in_page, here);
    address += here;
    out += here;
    bytes -= here;
  }
  return true;
}

bool AddressSpace::read_pages(Range range, std::uint8_t* to) {
  assert(range.begin % page_bytes == 0 && range.end % page_bytes == 0 && range.begin <= range.end);
  std::memset(to, 0, range.bytes());
  std::vector<Piece> pieces;
  std::uint64_t wanted = 0;
  for (std::uint64_t begin = range.begin; begin < range.end;) {
    const MappedPart part = part_at({begin, range.end});
    for (auto at = part.states.begin(); at != part.states.end();) {
      const auto first = std::find(at, part.states.end(), PageState::resident);
      at = std::find_if(first, part.states.end(), [](PageState each) { return each != PageState::resident; });
      if (first == at) continue;
      const auto page = static_cast<std::uint64_t>(first - part.states.begin());
      const std::uint64_t address = begin + page * page_bytes;
      const auto bytes = static_cast<std::uint64_t>(at - first) * page_bytes;
      pieces.push_back({address, to + (address - range.begin), bytes});
      wanted += bytes;
    }
    begin = part.range.end;
  }
  const std::uint64_t before = read_bytes_;
  read_pieces(pieces);
  return read_bytes_ == before + wanted;
}

}  // namespace cmt::watch::explain
