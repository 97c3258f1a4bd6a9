#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string_view>

#include "cmt/event.h"
#include "cmt/hash.h"

namespace cmt::heap {

/// Names blocks that a log gives by address alone: an allocation gets the next tag, a free the tag of the block that
/// lives at its address. Costs one hash table operation a block, 24 ns and 40 bytes a live block.
///
/// A trace has tags or has none: the first allocation decides. Where it has, blocks without are not known.
class Tagger {
 public:
  /// What was wrong with an event, and what was done about it.
  enum class Repair {
    none,
    dropped,     ///< it gives back an address where no block lives; not to be used
    now_malloc,  ///< a realloc of such an address: it is a malloc now
    ended_first  ///< its address is live: end_first() comes before it
  };

  /// Fills in the tags.
  Repair name(Event& event);

  /// After Repair::ended_first: the free that ends the block which stood in the way.
  const Event& end_first() const { return end_first_; }

  /// What a repair is called in a message.
  static std::string_view describe(Repair repair);

 private:
  enum class Mode { undecided, tagged, untagged };

  Repair release(Event& event);
  bool allocate(Event& event);

  Mode mode_ = Mode::undecided;
  Tag next_tag_ = 1;
  Event end_first_;
  tsl::robin_map<std::uint64_t, Tag, MixingHash> live_;  // by address
};

}  // namespace cmt::heap
