// Compares the pages with zeros. It holds one huge page at a time.
#include "cmtwatch/explain/memory/huge_pages.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cmt::watch::explain {

std::optional<std::uint64_t> zero_bytes_in_huge_pages(AddressSpace& memory) {
  static constexpr std::array<std::uint8_t, page_bytes> zeros{};
  std::vector<std::uint8_t> bytes(huge_page_bytes);
  std::uint64_t zero_bytes = 0;
  for (const process::Mapping& mapping : memory.mappings()) {
    if (mapping.huge_page_bytes == 0) continue;
    const auto huge_pages = memory.huge_pages(mapping);
    if (!huge_pages) return std::nullopt;
    for (const Range& range : *huge_pages) {
      for (std::uint64_t at = range.begin; at < range.end;) {
        const std::uint64_t end = std::min(range.end, at + huge_page_bytes);
        if (!memory.read_pages({at, end}, bytes.data())) return std::nullopt;
        for (std::uint64_t page = 0; page < end - at; page += page_bytes)
          zero_bytes += std::memcmp(bytes.data() + page, zeros.data(), page_bytes) == 0 ? page_bytes : 0;
        at = end;
      }
    }
  }
  return zero_bytes;
}

}  // namespace cmt::watch::explain
