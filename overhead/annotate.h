#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cmt/reader.h"
#include "libcmt/heap/address_index.h"
#include "libcmt/heap/clock.h"
#include "libcmt/heap/live_totals.h"
#include "toolkit/annotate/annotated_text.h"
#include "toolkit/command/complaints.h"

namespace cmt::overhead {

/// Annotates the events that make or end a block with its neighbours, gaps and pages.
///
///     malloc(20) = 81d2899a0<8>      # prev 81d289980, gap 0, next 81d28ba20, gap 8300, pages [8508041, 8508041], 0
///     more pages free(81d2899a0<8>)             # 20 bytes, allocated 2 lines ago, prev …, gap …, next …, gap …, pages
///     [A-B], 0 fewer pages
///
/// The forms are those of overhead.py, byte for byte: also the comma in one pair of brackets and the minus in the
/// other, and the blank behind `more pages`. A realloc there told what it loses and not what it gains; here the form of
/// a free and the form of a malloc follow each other, with "; " between them.
///
/// No neighbour: address 0, gap -1. Gaps are by the size asked for. A page counts as gained or lost unless the nearest
/// block on either side is on it too. A block of size 0 is on one page. A block from before the trace's begin is an
/// `unknown block`. Blocks are told apart by address. Memory: at most 64 bytes a live block, and 4 KiB for every 2 MiB
/// in which blocks lie.
class Annotator {
 public:
  struct Settings {
    heap::Clock::Unit clock = heap::Clock::Unit::events;
    int page_shift = 12;      ///< a page is 2 to this many bytes
    bool huge_pages = false;  ///< pages of 2 MiB too
    bool totals = false;      ///< also what is live after the event, and on how many pages
  };

  /// Borrows `out` and `complaints`.
  Annotator(Settings settings, heap::AnnotatedText& out, command::Complaints& complaints)
      : settings_(settings), out_(out), complaints_(complaints), clock_(settings.clock) {}

  /// Takes the next event, and the line it is to be shown as. Throws FormatError for a block without an address.
  void add(const Event& event, std::string_view line);

  /// Appends a comment line for every block that is still alive, the oldest first. Costs a copy of them.
  void append_leaks();

 private:
  static constexpr int huge_page_shift = 21;

  void annotate_end(const Event& event);
  void annotate_begin(const Event& event);
  void count_begin(const heap::Neighbourhood& found);
  void count_end(const heap::Neighbourhood& found);
  void append_neighbours(const heap::Neighbourhood& found);
  void append_pages(const heap::Neighbourhood& found, std::string_view between, std::string_view change);
  void append_page_range(const heap::Neighbourhood& found, int shift, std::string_view between);
  void append_totals();
  void check_overlap(const heap::Neighbourhood& found);
  void need_addresses(const Event& event) const;
  void complain(const std::string& what);

  Settings settings_;
  heap::AnnotatedText& out_;
  command::Complaints& complaints_;
  heap::Clock clock_;
  heap::AddressIndex live_;
  heap::LiveTotals totals_;
  std::uint64_t pages_ = 0;       // that live blocks are on
  std::uint64_t huge_pages_ = 0;  // the same, of 2 MiB
  Tag first_tag_ = 0;             // that was made here; 0: none yet
};

}  // namespace cmt::overhead
