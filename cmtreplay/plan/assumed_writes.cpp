// Learns from blocks that have ended how far blocks of one call and size are written.
#include "cmtreplay/plan/assumed_writes.h"

#include <algorithm>

#include "cmtreplay/protocol.h"

namespace cmt::replay {
namespace {

constexpr std::size_t uses_max = 1 << 16;

std::uint64_t key_of(Kind kind, std::uint64_t size) { return size << 8 | static_cast<std::uint64_t>(kind); }

}  // namespace

std::uint64_t bytes_of_pages(const Event& event) {
  std::uint64_t bytes = 0;
  if (event.count == 0 || __builtin_mul_overflow(event.count, event.alignment, &bytes)) return unknown;
  return bytes;
}

void AssumedWrites::count(const Event& event) {
  if (!known()) return;
  if (names_pages(event.kind)) return count_pages(event);
  if (event.ends_block()) end_block(event.old_tag);
  if (!event.makes_block()) return;
  end_block(event.tag);  // only if the trace uses the tag of a live block again
  const std::uint64_t size = event.bytes();
  if (size < touched_min_) return;
  blocks_.emplace(event.tag, Block{.size = size, .untouched = size, .alike = key_of(event.kind, size)});
  bytes_ += size;
}

void AssumedWrites::count_pages(const Event& event) {
  const auto found = blocks_.find(event.old_tag);
  if (found == blocks_.end() || event.size >= found->second.size) return;
  Block& block = found->second;
  const std::uint64_t left = block.size - event.size;
  const std::uint64_t touched = std::min({bytes_of_pages(event), left, block.untouched});
  block.untouched -= touched;
  bytes_ -= touched;
  const std::uint64_t end = event.size + std::min(bytes_of_pages(event), left);
  if (event.kind == Kind::touch) block.written_end = std::max(block.written_end, end);
  // The last page may be resident because of the next block.
  if (event.kind == Kind::touch || left >= page_bytes) block.idle_begin = std::max(block.idle_begin, end);
}

Event AssumedWrites::assume_written(const Event& recorded) const {
  Event event = recorded;
  if (event.kind != Kind::resident) return event;
  const auto block = blocks_.find(event.old_tag);
  const auto found = block != blocks_.end() ? uses_.find(block->second.alike) : uses_.end();
  if (found == uses_.end() || !found->second.has_idle || event.alignment == 0) return event;
  const std::uint64_t size = block->second.size, end = std::max(found->second.written_end, found->second.idle_begin);
  if (end >= size) return event;
  if (end <= event.size) {
    event.size = size;  // the block's end: no page
  } else {
    const std::uint64_t pages = (end - event.size - 1) / event.alignment + 1;
    event.count = event.count == 0 ? pages : std::min(event.count, pages);
  }
  return event;
}

void AssumedWrites::end_block(Tag tag) {
  const auto ended = blocks_.extract(tag);
  if (!ended) return;
  const Block& block = ended.mapped();
  bytes_ -= block.untouched;
  if (uses_.size() == uses_max && !uses_.contains(block.alike)) return;
  Use& use = uses_[block.alike];
  use.written_end = std::max(use.written_end, block.written_end);
  if (block.size - block.idle_begin < page_bytes) return;
  use.idle_begin = std::max(use.idle_begin, block.idle_begin);
  use.has_idle = true;
}

}  // namespace cmt::replay
