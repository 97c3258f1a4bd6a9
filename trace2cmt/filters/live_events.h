#pragma once

#include <cstdint>

#include "cmt/event.h"
#include "filter.h"
#include "libcmt/block_table.h"

namespace trace2cmt {

/// The live blocks at a moment of a trace, each with what its allocation said, so that it can be made again. Memory: 72
/// bytes a live block.
class LiveEvents {
 public:
  void follow(const cmt::Event& event);

  /// Hands out the allocations, by rising tag: of the kind, the thread and the time that they had. A realloc's block is
  /// made by malloc.
  void allocate_again(const Emit& emit);

 private:
  struct Block {
    cmt::Tag tag = 0;
    std::uint64_t size = 0, count = 0, alignment = 0, address = 0, time_ns = 0, usable = 0;
    std::uint32_t thread = 0;
    cmt::Kind kind = cmt::Kind::malloc;
  };

  cmt::BlockTable<Block> blocks_;
  cmt::Tag newest_ = 0;
};

}  // namespace trace2cmt
