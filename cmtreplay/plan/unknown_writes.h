/// Counts the bytes that were live at the peak and of which the trace does not say whether the program wrote to them.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "cmt/event.h"

namespace cmt::replay {

/// Counts the bytes that were live at the peak and of which the trace does not say whether the program wrote to them.
/// A replay with --touch=page or all writes them. So the peak of the program may be lower by up to so many bytes. They
/// are in two kinds of blocks:
///
/// - Blocks below touched_min. Only whole pages within such a block count, without the first one: from 8 KiB on.
///
/// - Larger blocks whose pages the tracer had no time to ask for. Such a block has a `resident` event later than at its
///   allocation, mostly at its end.
class UnknownWrites {
 public:
  /// 0: the trace does not have touched pages, so all blocks are unknown.
  void set_touched_min(std::uint64_t bytes) { touched_min_ = bytes; }

  void count(const Event& event);
  /// To be called after an event with which more bytes are live than ever before.
  void note_peak();

  std::uint64_t bytes_at_peak() const { return bytes_at_peak_; }

 private:
  struct Block {
    std::uint64_t size = 0, unknown = 0;
    std::uint64_t made_by = 0;  ///< the event, counted from 1
  };

  bool is_large(std::uint64_t size) const { return touched_min_ != 0 && size >= touched_min_; }
  void add_block(const Event& event);
  void end_block(Tag tag);
  void count_late_pages(const Event& event);

  std::uint64_t touched_min_ = 0;
  std::unordered_map<Tag, Block> blocks_;  ///< the live ones of at least two pages
  std::uint64_t events_ = 0, peak_event_ = 0;
  std::uint64_t bytes_ = 0, bytes_at_peak_ = 0;
  Tag new_block_ = 0;  ///< the block that the last events made, with its resident pages; 0: none
};

}  // namespace cmt::replay
