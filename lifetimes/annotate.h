#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cmt/reader.h"
#include "libcmt/block_table.h"
#include "libcmt/heap/clock.h"
#include "libcmt/heap/live_totals.h"
#include "toolkit/annotate/annotated_text.h"
#include "toolkit/command/complaints.h"

namespace cmt::lifetimes {

/// Annotates the events that end a block with its size and age.
///
///     malloc(8) = 81d220b48<6655>
///     realloc(81d220b48<6655>, 16) = 81d3b83a0<6656>    # 8 bytes, allocated 1 lines ago
///     free(81d3b83a0<6656>)                             # 16 bytes, allocated 1 lines ago
///
/// The form is that of lifetimes.py, byte for byte ("1 lines" included). By the events' clock an age counts the lines
/// of a text without comments. A block from before the trace's begin is an `unknown block`. Blocks are told apart by
/// tag, so a trace without addresses will do. Memory: some 60 bytes a live block.
class Annotator {
 public:
  struct Settings {
    heap::Clock::Unit clock = heap::Clock::Unit::events;
    bool totals = false;  ///< also what is live after the event
  };

  /// Borrows `out` and `complaints`.
  Annotator(Settings settings, heap::AnnotatedText& out, command::Complaints& complaints)
      : settings_(settings), out_(out), complaints_(complaints), clock_(settings.clock) {}

  /// Takes the next event, and the line it is to be shown as.
  void add(const Event& event, std::string_view line);

  /// Appends a comment line for every block that is still alive, the oldest first. Costs a copy of them.
  void append_leaks();

 private:
  /// A PlacedBlock without what is not needed here: BlockTable is within its bounds with 32 bytes.
  struct Block {
    Tag tag = 0;
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;
  };

  void end(Tag tag);
  void begin(const Event& event);
  void append_age(const Block& block);
  void append_totals(bool first);
  void complain(Tag tag, std::string_view what);

  Settings settings_;
  heap::AnnotatedText& out_;
  command::Complaints& complaints_;
  heap::Clock clock_;
  BlockTable<Block> live_;
  heap::LiveTotals totals_;
  Tag first_tag_ = 0;  // that was made here; 0: none yet
};

}  // namespace cmt::lifetimes
