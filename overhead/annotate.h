#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cmt/reader.h"
#include "heap/address_index.h"
#include "heap/annotated_text.h"
#include "heap/complaints.h"

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
class OverheadAnnotator {
 public:
  /// `name` is the input's, for messages. Borrows the others.
  OverheadAnnotator(std::string name, cmt::heap::AnnotatedText& out, cmt::heap::Complaints& complaints)
      : name_(std::move(name)), out_(out), complaints_(complaints) {}

  /// Takes the next event, and the line it is to be shown as. Throws FormatError for a block without an address.
  void add(const cmt::Event& event, std::string_view line);

 private:
  void annotate_end(const cmt::Event& event);
  void annotate_begin(const cmt::Event& event);
  void append_neighbours(const cmt::heap::Neighbourhood& found);
  void append_pages(const cmt::heap::Neighbourhood& found, std::string_view between);
  void check_overlap(const cmt::heap::Neighbourhood& found);
  void need_addresses(const cmt::Event& event) const;
  void complain(const std::string& what);
  std::string place() const { return name_ + ": event " + std::to_string(event_); }

  std::string name_;
  cmt::heap::AnnotatedText& out_;
  cmt::heap::Complaints& complaints_;
  cmt::heap::AddressIndex live_;
  std::uint64_t event_ = 0;
  cmt::Tag first_tag_ = 0;  // that was made here; 0: none yet
};
