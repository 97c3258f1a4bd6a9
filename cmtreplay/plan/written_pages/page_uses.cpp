// Adds up the pages of blocks by call and size, exactly and in classes of sizes.
#include "cmtreplay/plan/written_pages/page_uses.h"

#include <algorithm>
#include <bit>

#include "cmtreplay/protocol.h"

namespace cmt::replay {
namespace {

constexpr std::size_t sizes_max = 1 << 16;

std::uint64_t exact_key(Kind kind, std::uint64_t size) { return size << 8 | static_cast<std::uint64_t>(kind); }

/// Four classes for each power of two.
std::uint64_t class_key(Kind kind, std::uint64_t size) {
  const auto bits = static_cast<std::uint64_t>(std::bit_width(size));
  const std::uint64_t quarter = bits > 2 ? size >> (bits - 3) & 3 : 0;
  return exact_key(kind, bits << 2 | quarter);
}

}  // namespace

std::uint64_t bytes_of_pages(const Event& event) {
  std::uint64_t bytes = 0;
  if (event.count == 0 || __builtin_mul_overflow(event.count, event.alignment, &bytes)) return unknown;
  return bytes;
}

void PageUses::learn(const Event& event) {
  if (touched_min_ == 0) return;
  if (names_pages(event.kind)) {
    const auto found = blocks_.find(event.old_tag);
    if (event.kind != Kind::resident || event.old_tag != new_block_) new_block_ = 0;
    if (found == blocks_.end() || event.size >= found->second.size) return;
    Block& block = found.value();
    if (event.kind == Kind::resident && new_block_ == 0) block.is_late = true;
    std::uint64_t& sum = event.kind == Kind::touch ? block.touched : block.resident;
    if (event.size != 0) block.shorten_begin(event);
    if (event.size == 0 && event.count != 0) block.begin = event.kind;
    sum += std::min({bytes_of_pages(event), block.size - event.size, block.size - block.touched - block.resident});
    return;
  }
  new_block_ = 0;
  if (event.ends_block()) end_block(event.old_tag);
  if (!event.makes_block() || !is_large(event.bytes())) return;
  end_block(event.tag);  // only if the trace uses the tag of a live block again
  blocks_.emplace(event.tag, Block{.size = event.bytes(), .kind = event.kind});
  new_block_ = event.tag;
}

/// The offset of a later run shows where pages begin in the block. The page at the block's begin was counted whole, and
/// may start before the block: this subtracts the part outside.
void PageUses::Block::shorten_begin(const Event& later) {
  if (!begin) return;
  std::uint64_t& sum = *begin == Kind::touch ? touched : resident;
  const std::uint64_t within = later.alignment != 0 ? later.size % later.alignment : 0;
  if (within != 0) sum -= std::min(sum, later.alignment - within);
  begin.reset();
}

void PageUses::finish() {
  for (const auto& [tag, block] : blocks_) add(block);
  blocks_ = {};
}

void PageUses::end_block(Tag tag) {
  const auto ended = blocks_.find(tag);
  if (ended == blocks_.end()) return;
  add(ended->second);
  blocks_.erase(ended);
}

void PageUses::add(const Block& block) {
  const std::uint64_t bytes = block.size - block.resident;
  if (block.is_late || bytes < page_bytes) return;  // its last page may be resident because of the next block
  const auto add_to = [&](tsl::robin_map<std::uint64_t, Use>& uses, std::uint64_t key) {
    if (uses.size() == sizes_max && !uses.contains(key)) return;
    Use& use = uses[key];
    ++use.blocks;
    use.bytes += bytes;
    use.written += block.touched;
  };
  add_to(exact_, exact_key(block.kind, block.size));
  add_to(about_, class_key(block.kind, block.size));
}

std::optional<PageUses::Use> PageUses::of(Kind kind, std::uint64_t size) const {
  if (const auto found = exact_.find(exact_key(kind, size)); found != exact_.end()) return found->second;
  if (const auto found = about_.find(class_key(kind, size)); found != about_.end()) return found->second;
  return std::nullopt;
}

}  // namespace cmt::replay
