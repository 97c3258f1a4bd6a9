// Keeps the size of each live block of two pages and more. A block is seen to be unknown at its end only, perhaps long
// after the peak.
#include "cmtreplay/plan/unknown_writes.h"

#include <algorithm>

#include "cmtreplay/protocol.h"

namespace cmt::replay {

void UnknownWrites::count(const Event& event, std::uint64_t number) {
  if (names_pages(event.kind)) {
    if (event.kind == Kind::resident && event.old_tag == begun_) return;
    begun_ = 0;
    if (event.kind == Kind::resident) count_late_pages(event);
    return;
  }
  begun_ = 0;
  if (event.ends_block()) end_block(event.old_tag);
  if (event.makes_block()) add_block(event, number);
}

void UnknownWrites::add_block(const Event& event, std::uint64_t number) {
  end_block(event.tag);  // only if the trace uses the tag of a live block again
  const std::uint64_t size = event.bytes();
  if (size < 2 * page_bytes) return;
  const std::uint64_t unknown = is_large(size) ? 0 : (size / page_bytes - 1) * page_bytes;
  blocks_.emplace(event.tag, Block{size, unknown, number});
  bytes_ += unknown;
  begun_ = event.tag;
}

void UnknownWrites::end_block(Tag tag) {
  const auto ended = blocks_.find(tag);
  if (ended == blocks_.end()) return;
  bytes_ -= ended->second.unknown;
  blocks_.erase(ended);
}

void UnknownWrites::count_late_pages(const Event& event) {
  const auto found = blocks_.find(event.old_tag);
  if (found == blocks_.end() || event.size >= found->second.size) return;
  Block& block = found->second;
  std::uint64_t bytes = 0;
  if (event.count == 0 || __builtin_mul_overflow(event.count, event.alignment, &bytes)) bytes = block.size;
  bytes = std::min({bytes, block.size - event.size, block.size - block.unknown});
  block.unknown += bytes;
  bytes_ += bytes;
  if (block.made_by <= peak_) bytes_at_peak_ += bytes;
}

void UnknownWrites::note_peak(std::uint64_t number) {
  bytes_at_peak_ = bytes_;
  peak_ = number;
}

}  // namespace cmt::replay
