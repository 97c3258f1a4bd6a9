/// Guesses which pages a program wrote to if a trace does not tell, and counts the bytes that were never written.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "cmt/event.h"

namespace cmt::replay {

/// Counts the bytes of live blocks to which the program has not written so far, where the trace tells that: of blocks
/// of at least touched_min bytes.
///
/// It also says which of the pages that are `resident`, of which nobody knows, are to be written. Programs use blocks
/// of one call and size alike: php takes 256 KiB for each request and writes one page of it, which is known of the
/// first such block, while later ones lie in memory that others have used. So once a block was seen that left its end
/// as it was, pages are left out that lie behind all that was seen written in any of them. Until then all are written.
class AssumedWrites {
 public:
  /// 0: the trace does not tell.
  void set_touched_min(std::uint64_t bytes) { touched_min_ = bytes; }

  void count(const Event& event);

  /// Of kind `resident`, the event with the pages that are to be written: perhaps none. To be counted instead of it.
  Event assume_written(const Event& event) const;

  bool known() const { return touched_min_ != 0; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Block {
    std::uint64_t size = 0, untouched = 0;
    std::uint64_t alike = 0;                        ///< the same for all of its call and size
    std::uint64_t written_end = 0, idle_begin = 0;  ///< what lies between is not known
  };
  /// Of all blocks of a call and size that have ended.
  struct Use {
    std::uint64_t written_end = 0;
    std::uint64_t idle_begin = 0;  ///< the largest of blocks whose last page or more was left as it was
    bool has_idle = false;         ///< there was such a block
  };

  void count_pages(const Event& event);
  void end_block(Tag tag);

  std::uint64_t touched_min_ = 0;
  std::unordered_map<Tag, Block> blocks_;        ///< the live ones of that size
  std::unordered_map<std::uint64_t, Use> uses_;  ///< by Block::alike
  std::uint64_t bytes_ = 0;
};

}  // namespace cmt::replay
