#pragma once

#include <tsl/robin_map.h>

#include <cstdint>

#include "cmt/event.h"
#include "cmt/hash.h"

namespace cmt::format {

/// What is known of a live block.
struct LiveBlock {
  std::uint64_t address = 0;
  std::uint64_t size = 0;  ///< bytes asked for
};

/// The live blocks by tag: 40 bytes a block at the table's usual load.
using LiveBlocks = tsl::robin_map<Tag, LiveBlock, MixingHash>;

}  // namespace cmt::format
