#include "trace2cmt/inspect/touch_counts.h"

#include <cassert>

namespace cmt::trace2cmt {

void TouchCounter::count(const cmt::Event& event, const cmt::Ledger::Entry& entry) {
  if (!entry.accepted || !entry.old_known || entry.old.size < counts_.touched_min) return;
  assert(entry.old.tag == event.old_tag);
  if (cmt::tells_pages(event.kind)) return count_run(event, entry.old);
  if (!event.ends_block()) return;
  count_block(entry.old);
  pages_.end_block(entry.old.tag);
}

void TouchCounter::count_run(const cmt::Event& event, const cmt::format::LiveBlock& block) {
  constexpr std::uint64_t page = 4096;
  std::uint64_t bytes = 0;
  pages_.add(event, cmt::heap::bytes_of(event, block.address, block.size), block.size,
             [&](std::uint64_t begin, std::uint64_t end, bool added) { bytes += added ? begin - end : end - begin; });
  if (event.kind == cmt::Kind::resident) {
    counts_.resident_bytes += bytes;
    return;
  }
  counts_.touched_bytes += bytes;
  counts_.touched_pages += (bytes + page - 1) / page;
}

void TouchCounter::count_block(const cmt::format::LiveBlock& block) {
  std::uint64_t untouched = 0;
  pages_.for_each_gap(block.tag, block.size, [&](std::uint64_t begin, std::uint64_t end) { untouched += end - begin; });
  assert(untouched <= block.size);
  ++counts_.blocks;
  counts_.bytes += block.size;
  counts_.untouched_bytes += untouched;
  counts_.untouched_blocks += untouched == block.size;
}

TouchCounts TouchCounter::finish(const cmt::format::LiveBlocks& live) {
  live.for_each([this](const cmt::format::LiveBlock& block) {
    if (block.size >= counts_.touched_min) count_block(block);
  });
  return counts_;
}

}  // namespace cmt::trace2cmt
