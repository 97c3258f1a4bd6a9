#pragma once

#include <cstdint>

#include "cmt/block_table.h"
#include "cmt/event.h"

namespace cmt::format {

/// What is known of a live block.
struct LiveBlock {
  Tag tag = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;  ///< bytes asked for
};

using LiveBlocks = BlockTable<LiveBlock>;

}  // namespace cmt::format
