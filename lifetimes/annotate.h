#pragma once

#include <cstdint>
#include <string_view>

#include "cmt/event.h"
#include "libcmt/heap/live_totals.h"
#include "lifetimes/live_blocks.h"
#include "toolkit/annotate/trace_tool.h"

namespace cmt::lifetimes {

/// Annotates each event that ends a block with the block's size and age.
///
///     malloc(8) = 81d220b48<6655>
///     realloc(81d220b48<6655>, 16) = 81d3b83a0<6656>    # 8 bytes, allocated 1 lines ago
///     free(81d3b83a0<6656>)                             # 16 bytes, allocated 1 lines ago
///
/// The form is that of the original's lifetimes.py, byte for byte ("1 lines" included). By the clock of events an age
/// counts the lines of a text without comments. A block that was made before the trace began is an `unknown block`.
/// Blocks are told apart by tag, so that a trace without addresses is enough. Memory: some 60 bytes a live block.
class Annotator {
 public:
  /// Borrows `out` and `complaints`. With `options.totals` it also shows the live bytes and blocks after the event.
  Annotator(const annotate::Options& options, annotate::AnnotatedText& out, command::Complaints& complaints)
      : shows_totals_(options.totals), out_(out), live_(options.clock, complaints) {}

  /// Writes the line that the next event is shown as, with its annotation.
  void annotate(const Event& event, std::string_view line);

  /// Appends a comment line for every live block, the oldest first. Costs a copy of them.
  void append_leaks();

 private:
  /// A heap::PlacedBlock without its slop: BlockTable is within its bounds with 32 bytes.
  struct Block {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;
    std::uint64_t address = 0;
  };

  void end_block(Tag tag);
  void begin_block(const Event& event);

  bool shows_totals_;
  annotate::AnnotatedText& out_;
  LiveBlocks<Block> live_;
  heap::LiveTotals totals_;
};

}  // namespace cmt::lifetimes
