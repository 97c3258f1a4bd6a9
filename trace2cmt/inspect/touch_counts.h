#pragma once

#include <cstdint>

#include "cmt/event.h"
#include "libcmt/format/live_blocks.h"
#include "libcmt/heap/touched_pages.h"
#include "libcmt/trace/ledger.h"
#include "toolkit/output/fields.h"

namespace cmt::trace2cmt {

/// What a trace tells of touched pages, over all blocks whose pages were recorded.
struct TouchCounts {
  std::uint64_t touched_min = 0;  ///< 0: nothing was recorded
  std::uint64_t blocks = 0, bytes = 0;
  std::uint64_t touched_pages = 0, touched_bytes = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t untouched_blocks = 0, untouched_bytes = 0;
};

template <class Visitor, cmt::output::DescribedAs<TouchCounts> T>
void describe(Visitor& field, T& counts) {
  field("touched_min_bytes", counts.touched_min, "the least size of blocks whose touched pages were recorded");
  field("watched_blocks", counts.blocks, "blocks of at least that size");
  field("watched_bytes", counts.bytes, "bytes asked for by them");
  field("touched_pages", counts.touched_pages, "pages of 4 KiB of these blocks that the program touched first");
  field("touched_bytes", counts.touched_bytes, "bytes of the blocks on touched pages");
  field("maybe_touched_bytes", counts.resident_bytes,
        "bytes of the blocks on pages that were in memory before: nobody knows whether they were touched");
  field("untouched_blocks", counts.untouched_blocks, "blocks of which no page was touched or in memory before");
  field("untouched_bytes", counts.untouched_bytes, "bytes asked for, but never touched, of all these blocks");
}

/// Counts them, event by event. Memory: that of TouchedPages.
class TouchCounter {
 public:
  explicit TouchCounter(std::uint64_t touched_min) { counts_.touched_min = touched_min; }

  /// `entry`: what the ledger said of the event.
  void count(const cmt::Event& event, const cmt::Ledger::Entry& entry);

  /// `live`: the blocks that live at the end. To be called once.
  TouchCounts finish(const cmt::format::LiveBlocks& live);

 private:
  void count_run(const cmt::Event& event, const cmt::format::LiveBlock& block);
  void count_block(const cmt::format::LiveBlock& block);

  TouchCounts counts_;
  cmt::heap::TouchedPages pages_;
};

}  // namespace cmt::trace2cmt
