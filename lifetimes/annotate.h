#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cmt/reader.h"
#include "heap/annotated_text.h"
#include "heap/block_table.h"
#include "heap/complaints.h"

/// Annotates the events that end a block with its size and age.
///
///     malloc(8) = 81d220b48<6655>
///     realloc(81d220b48<6655>, 16) = 81d3b83a0<6656>    # 8 bytes, allocated 1 lines ago
///     free(81d3b83a0<6656>)                             # 16 bytes, allocated 1 lines ago
///
/// The form is that of lifetimes.py, byte for byte ("1 lines" included). An age counts events, which are the lines of a
/// text without comments. A block from before the trace's begin is an `unknown block`. Blocks are told apart by tag, so
/// a trace without addresses will do. Memory: some 50 bytes a live block.
class LifetimeAnnotator {
 public:
  /// `name` is the input's, for messages. Borrows the others.
  LifetimeAnnotator(std::string name, cmt::heap::AnnotatedText& out, cmt::heap::Complaints& complaints)
      : name_(std::move(name)), out_(out), complaints_(complaints) {}

  /// Takes the next event, and the line it is to be shown as.
  void add(const cmt::Event& event, std::string_view line);

 private:
  struct Block {
    cmt::Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;  // the number of the event that made it
  };

  void annotate_end(cmt::Tag tag, std::string_view line);
  void begin(const cmt::Event& event);
  void complain(cmt::Tag tag, std::string_view what);

  std::string name_;
  cmt::heap::AnnotatedText& out_;
  cmt::heap::Complaints& complaints_;
  cmt::heap::BlockTable<Block> live_;
  std::uint64_t event_ = 0;
  cmt::Tag first_tag_ = 0;  // that was made here; 0: none yet
};
