// Keeps the size of each live block of two pages and more. A block is seen to be unknown at its end only, perhaps long
// after the peak.
#include "cmtreplay/plan/written_pages/assumed_writes.h"

#include <algorithm>

#include "cmtreplay/protocol.h"

namespace cmt::replay {

const Event& AssumedWrites::plan(const Event& recorded) {
  ++events_;
  if (names_pages(recorded.kind)) {
    const auto found = blocks_.find(recorded.old_tag);
    if (found == blocks_.end() || recorded.size >= found->second.size) return recorded;
    const Event& event = recorded.kind == Kind::resident ? plan_resident(recorded, found.value()) : recorded;
    count_pages(event, found.value());
    return event;
  }
  if (recorded.ends_block()) end_block(recorded.old_tag);
  if (recorded.makes_block()) add_block(recorded);
  return recorded;
}

const Event& AssumedWrites::plan_resident(const Event& recorded, Block& block) {
  const auto use = uses_->of(block.kind, block.size);
  const std::uint64_t unknown = !use || use->blocks < alike_min ? add_unknown(block, recorded) : 0;
  if (!use || use->written == use->bytes || recorded.alignment == 0) return recorded;
  // The first page of a block may be in memory because of the allocator, and a program that uses a block writes to it.
  const std::uint64_t bytes = std::min(bytes_of_pages(recorded), block.size - recorded.size);
  const std::uint64_t page = recorded.alignment, first = recorded.size == 0 ? std::min(page, bytes) : 0;
  owed_ += use->share() * static_cast<double>(bytes - first);
  const auto more = std::min(static_cast<std::uint64_t>(owed_ / static_cast<double>(page)), (bytes - first) / page + 1);
  owed_ = std::max(0.0, owed_ - static_cast<double>(std::min(bytes - first, more * page)));
  const std::uint64_t pages = more + (first != 0 ? 1 : 0), left = bytes - first - std::min(bytes - first, more * page);
  add_left_out(block, std::min(unknown, left / page * page));
  changed_ = recorded;
  if (pages == 0)
    changed_.size = block.size;  // the block's end: no page
  else if (pages <= (bytes - 1) / page)
    changed_.count = pages;
  return changed_;
}

std::uint64_t AssumedWrites::add_unknown(Block& block, const Event& pages) {
  std::uint64_t bytes = std::min(bytes_of_pages(pages), block.size - pages.size);
  if (pages.size == 0) bytes -= std::min(bytes, std::uint64_t{page_bytes});
  bytes = std::min(bytes / page_bytes * page_bytes, block.size - block.unknown);
  block.unknown += bytes;
  unknown_ += bytes;
  if (block.made_by <= peak_event_) unknown_at_peak_ += bytes;
  return bytes;
}

void AssumedWrites::add_left_out(Block& block, std::uint64_t bytes) {
  block.left_out += bytes;
  left_out_ += bytes;
  if (block.made_by <= peak_event_) left_out_at_peak_ += bytes;
}

void AssumedWrites::count_pages(const Event& event, Block& block) {
  if (event.size >= block.size) return;
  const std::uint64_t written = std::min({bytes_of_pages(event), block.size - event.size, block.unwritten});
  block.unwritten -= written;
  unwritten_ -= written;
}

void AssumedWrites::add_block(const Event& event) {
  end_block(event.tag);  // only if the trace uses the tag of a live block again
  const std::uint64_t size = event.bytes();
  const bool is_large = uses_->is_large(size);
  if (size < 2 * page_bytes && !is_large) return;
  const Block block{.size = size,
                    .unwritten = is_large ? size : 0,
                    .unknown = is_large ? 0 : (size / page_bytes - 1) * page_bytes,
                    .made_by = events_,
                    .kind = event.kind};
  blocks_.emplace(event.tag, block);
  unwritten_ += block.unwritten;
  unknown_ += block.unknown;
}

void AssumedWrites::end_block(Tag tag) {
  const auto ended = blocks_.find(tag);
  if (ended == blocks_.end()) return;
  unwritten_ -= ended->second.unwritten;
  unknown_ -= ended->second.unknown;
  left_out_ -= ended->second.left_out;
  blocks_.erase(ended);
}

void AssumedWrites::note_peak() {
  unknown_at_peak_ = unknown_;
  left_out_at_peak_ = left_out_;
  peak_event_ = events_;
}

}  // namespace cmt::replay
