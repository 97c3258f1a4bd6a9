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
  if (event.ends_block()) end_block(event.old_tag);
  if (!event.makes_block()) return;
  end_block(event.tag);  // of a trace that uses the tag of a live block again
  const std::uint64_t size = event.bytes();
  if (size < touched_min_) return;
  blocks_.emplace(event.tag, Block{size, size});
  bytes_ += size;
}

void UntouchedBytes::end_block(Tag tag) {
  if (const auto ended = blocks_.extract(tag)) bytes_ -= ended.mapped().untouched;
}

}  // namespace cmt::replay
