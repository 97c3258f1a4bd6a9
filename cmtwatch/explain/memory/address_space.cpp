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

std::uint64_t AddressSpace::count(Range range, PageState state) {
  range = {page_end(range.begin), page_begin(range.end)};
  const process::Mapping* const mapping = range.begin < range.end ? find(range.begin) : nullptr;
  if (mapping == nullptr) return 0;
  const auto all = states(*mapping);
  const std::uint64_t first = (range.begin - mapping->begin) / page_bytes;
  const std::uint64_t end = (std::min(range.end, mapping->end) - mapping->begin) / page_bytes;
  const auto counted = all.subspan(first, end - first);
  return page_bytes * static_cast<std::uint64_t>(std::count(counted.begin(), counted.end(), state));
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
  const process::Mapping* const mapping = find(range.begin);
  if (mapping == nullptr || range.end > mapping->end) return false;
  const auto all = states(*mapping);
  std::vector<Piece> pieces;
  std::uint64_t wanted = 0;
  for (std::uint64_t at = range.begin; at < range.end;) {
    const auto is_resident = [&](std::uint64_t page) {
      return all[(page - mapping->begin) / page_bytes] == PageState::resident;
    };
    const bool resident = is_resident(at);
    std::uint64_t end = at + page_bytes;
    while (end < range.end && is_resident(end) == resident) end += page_bytes;
    std::uint8_t* const place = to + (at - range.begin);
    if (resident) {
      pieces.push_back({at, place, end - at});
      wanted += end - at;
    } else {
      std::memset(place, 0, end - at);
    }
    at = end;
  }
  const std::uint64_t before = read_bytes_;
  read_pieces(pieces);
  return read_bytes_ == before + wanted;
}

}  // namespace cmt::watch::explain
