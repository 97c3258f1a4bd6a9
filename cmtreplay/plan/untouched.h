#pragma once

#include <cstdint>
#include <unordered_map>

#include "cmt/event.h"

namespace cmt::replay {

/// Counts the bytes of live blocks to which the program has not written so far, where the trace tells that: of blocks
/// of at least touched_min bytes.
class UntouchedBytes {
 public:
  /// 0: the trace does not tell.
  void set_touched_min(std::uint64_t bytes) { touched_min_ = bytes; }

  void count(const Event& event);

  bool known() const { return touched_min_ != 0; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Block {
    std::uint64_t size = 0, untouched = 0;
  };

  void end_block(Tag tag);

  std::uint64_t touched_min_ = 0;
  std::unordered_map<Tag, Block> blocks_;  ///< the live ones of that size
  std::uint64_t bytes_ = 0;
};

}  // namespace cmt::replay
