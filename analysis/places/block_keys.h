/// Finds the set that made a live block, by the block's address.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/fates/use.h"
#include "cmt/event.h"
#include "libcmt/block_table.h"
#include "libcmt/heap/address_index.h"

namespace cmt::analysis {

/// Keeps the set of each live block, a stack or another one, for overhead --by. Memory: some 25 bytes a live block.
class BlockKeys {
 public:
  explicit BlockKeys(analysis::By by) : keys_(by) {}

  void count_event(const Event& event) {
    const analysis::KeyId key = keys_.key_of(event);
    if (event.ends_block() && event.old_address != 0) blocks_.erase(event.old_address);
    if (!event.makes_block() || event.address == 0) return;
    if (Block* const there = blocks_.find(event.address))
      there->key = key;  // the trace has no event that ended this one
    else
      blocks_.insert({event.address, key});
  }

  analysis::KeyId of_block(const heap::PlacedBlock& block) {
    const Block* const found = blocks_.find(block.address);
    return found == nullptr ? 0 : found->key;
  }

  std::string name(analysis::KeyId key) const { return keys_.name(key); }

 private:
  struct Block {
    std::uint64_t address = 0;
    analysis::KeyId key = 0;
  };

  analysis::AllocationKeys keys_;
  ScatteredBlocks<Block, &Block::address> blocks_;
};

}  // namespace cmt::analysis
