// Lists of live blocks by rising tag, as keyframes have them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cmt/event.h"
#include "libcmt/block_table.h"

namespace cmt::format {

using cmt::LiveBlock;
using LiveBlocks = BlockTable<LiveBlock>;

inline void sort_by_tag(std::vector<LiveBlock>& blocks) {
  std::sort(blocks.begin(), blocks.end(), [](const LiveBlock& a, const LiveBlock& b) { return a.tag < b.tag; });
}

/// Returns all live blocks, by rising tag.
inline std::vector<LiveBlock> by_tag(const LiveBlocks& live) {
  std::vector<LiveBlock> blocks;
  blocks.reserve(live.size());
  live.for_each([&](const LiveBlock& block) { blocks.push_back(block); });
  sort_by_tag(blocks);
  return blocks;
}

}  // namespace cmt::format
