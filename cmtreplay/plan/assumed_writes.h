/// Guesses which pages a program wrote to if the trace has no answer, and counts the bytes that were never written.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "cmt/event.h"

namespace cmt::replay {

/// The bytes of an event's pages, which may reach beyond the block.
std::uint64_t bytes_of_pages(const Event& event);

/// Counts the bytes of live blocks to which the program has not written so far. The trace has this for blocks of at
/// least touched_min bytes.
///
/// It also decides which `resident` pages a replay writes: nobody knows whether the program wrote to these. Programs
/// use blocks of one call and size alike. Example: php takes 256 KiB for each request and writes one page of it. The
/// trace shows that for the first such block only, since later ones are in memory that other blocks have used.
///
/// So it remembers how far the blocks of each call and size were written. Once a block has left its last page as it
/// was, it leaves out the resident pages after that point. Until then all of them are written.
class AssumedWrites {
 public:
  /// 0: the trace does not have touched pages.
  void set_touched_min(std::uint64_t bytes) { touched_min_ = bytes; }

  void count(const Event& event);

  /// Returns an event of kind `resident` with only those pages that are to be written, perhaps none. Count the returned
  /// event, not the original. Events of other kinds are returned as they are.
  Event assume_written(const Event& recorded) const;

  bool known() const { return touched_min_ != 0; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Block {
    std::uint64_t size = 0, untouched = 0;
    std::uint64_t alike = 0;                        ///< equal for blocks of one call and size
    std::uint64_t written_end = 0, idle_begin = 0;  ///< nobody knows the bytes between
  };
  /// How blocks of one call and size were used, over all that have ended.
  struct Use {
    std::uint64_t written_end = 0;
    std::uint64_t idle_begin = 0;  ///< the largest of all blocks that left their last page as it was
    bool has_idle = false;         ///< there was such a block
  };

  void count_pages(const Event& event);
  void end_block(Tag tag);

  std::uint64_t touched_min_ = 0;
  std::unordered_map<Tag, Block> blocks_;        ///< the live ones of at least touched_min bytes
  std::unordered_map<std::uint64_t, Use> uses_;  ///< by Block::alike
  std::uint64_t bytes_ = 0;
};

}  // namespace cmt::replay
