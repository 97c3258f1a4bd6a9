#pragma once

#include <cstdint>

#include "cmt/event.h"
#include "libcmt/scattered_blocks.h"

namespace cmt::heap {

/// Names blocks that a log gives by address alone: an allocation gets the next tag, a free the tag of the block that
/// lives at its address. Costs one hash table operation a block, and 30 to 38 bytes a live block (70
/// in the moment in which the table grows).
///
/// A trace has tags or has none: the first allocation decides. Where it has, blocks without are not known.
class Tagger {
 public:
  /// Whether an event could be named. If not, it and what is known stay as they were.
  enum class Outcome {
    named,
    no_block,  ///< it gives back an address where no block lives
    occupied   ///< it makes a block at an address where one lives
  };

  /// Fills in the tags.
  Outcome name(Event& event);

  /// The free that ends the block at a live address, with the time and thread of `before`, which it makes room for.
  Event end(std::uint64_t address, const Event& before);

  /// Calls `visit` with address, tag and size of every block that got its tag here.
  template <class Visit>
  void for_each(Visit visit) const {
    live_.for_each([&](const Block& block) { visit(block.tag, block.name, block.size); });
  }

 private:
  enum class Mode { undecided, tagged, untagged };
  /// What lives at an address. The table knows its blocks by a member `tag`: here that is the address.
  struct Block {
    std::uint64_t tag = 0;
    Tag name = 0;
    std::uint64_t size = 0;
  };

  Outcome name_untagged(Event& event);

  Mode mode_ = Mode::undecided;
  Tag next_tag_ = 1;
  ScatteredBlocks<Block> live_;
};

}  // namespace cmt::heap
