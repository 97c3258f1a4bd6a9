// Keeps the size of each live block of two pages and more. A block is seen to be unknown at its end only, perhaps long
// after the peak.
#include "cmtreplay/plan/unknown_writes.h"

#include <algorithm>

#include "cmtreplay/plan/assumed_writes.h"
#include "cmtreplay/protocol.h"

namespace cmt::replay {

void UnknownWrites::count(const Event& event) {
  ++events_;
  if (names_pages(event.kind)) {
    if (event.kind == Kind::resident && event.old_tag == new_block_) return;
    new_block_ = 0;
    if (event.kind == Kind::resident) count_late_pages(event);
    return;
  }
  new_block_ = 0;
  if (event.ends_block()) end_block(event.old_tag);
  if (event.makes_block()) add_block(event);
}

void UnknownWrites::add_block(const Event& event) {
  end_block(event.tag);  // only if the trace uses the tag of a live block again
  const std::uint64_t size = event.bytes();
  if (size < 2 * page_bytes) return;
  const std::uint64_t unknown = is_large(size) ? 0 : (size / page_bytes - 1) * page_bytes;
  blocks_.emplace(event.tag, Block{size, unknown, events_});
  bytes_ += unknown;
  new_block_ = event.tag;
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
  const std::uint64_t bytes = std::min({bytes_of_pages(event), block.size - event.size, block.size - block.unknown});
  block.unknown += bytes;
  bytes_ += bytes;
  if (block.made_by <= peak_event_) bytes_at_peak_ += bytes;
}

void UnknownWrites::note_peak() {
  bytes_at_peak_ = bytes_;
  peak_event_ = events_;
}

}  // namespace cmt::replay
