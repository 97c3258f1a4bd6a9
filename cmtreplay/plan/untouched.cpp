#include "cmtreplay/plan/untouched.h"

#include <algorithm>

namespace cmt::replay {

void UntouchedBytes::count(const Event& event) {
  if (!known()) return;
  if (tells_pages(event.kind)) {
    const auto found = blocks_.find(event.old_tag);
    if (found == blocks_.end() || event.size >= found->second.size) return;
    auto& [size, untouched] = found->second;
    std::uint64_t touched = 0;
    if (event.count == 0 || __builtin_mul_overflow(event.count, event.alignment, &touched)) touched = unknown;
    touched = std::min({touched, size - event.size, untouched});
    untouched -= touched;
    bytes_ -= touched;
    return;
  }
  if (event.ends_block()) {
    if (const auto ended = blocks_.extract(event.old_tag)) bytes_ -= ended.mapped().untouched;
  }
  const std::uint64_t size = event.bytes();
  if (!event.makes_block() || size < touched_min_) return;
  if (blocks_.insert_or_assign(event.tag, Block{size, size}).second) bytes_ += size;
}

}  // namespace cmt::replay
