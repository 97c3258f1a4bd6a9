// Keeps the stretches of pages that blocks were ever on, joined where they touch.
#include "analysis/places/held_pages.h"

#include <iterator>

namespace cmt::analysis {

void HeldPages::gain(std::uint64_t first, std::uint64_t last, std::uint64_t pages) {
  if (pages == 0) return;
  ever_ += add_range(first, last);
  live_ += pages;
  most_ = std::min(most_, free());
}

void HeldPages::lose(std::uint64_t pages) {
  live_ -= pages;
  most_ = std::min(most_ + pages, free());
}

/// Returns how many of the pages no block was on before.
std::uint64_t HeldPages::add_range(std::uint64_t first, std::uint64_t last) {
  auto at = ranges_.upper_bound(first);
  if (at != ranges_.begin() && std::prev(at)->second + 1 >= first) --at;
  std::uint64_t known = 0;
  std::uint64_t begin = first, end = last;
  while (at != ranges_.end() && at->first <= last + 1) {
    if (at->first <= first && at->second >= last) return 0;
    if (at->first <= last && at->second >= first) known += std::min(last, at->second) - std::max(first, at->first) + 1;
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = ranges_.erase(at);
  }
  ranges_.emplace_hint(at, begin, end);
  return last - first + 1 - known;
}

}  // namespace cmt::analysis
