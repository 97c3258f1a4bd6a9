/// The output of lifetimes and overhead, when they annotate a trace: its lines with a comment each.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "libcmt/heap/address_index.h"
#include "libcmt/heap/clock.h"
#include "libcmt/text/digits.h"

namespace cmt::trace {

/// Lines of a trace as text, with annotations. An annotation follows " # ", in column 50 or after a longer line:
///
///     free(81d3b83a0<6656>)                             # 16 bytes, allocated 1 lines ago
///
/// The lines are collected in one buffer, which grows. Room for a whole line is made where it begins, so that a number
/// is written with no further check, in some 2 ns. An annotation has at most 1 KiB.
class AnnotatedText {
 public:
  /// Begins the line of an event: `line`, as it is in the input, or else, also where it holds characters that a
  /// terminal would obey, the canonical form. The calls that follow append to it until end_line(). `is_plain`: the line
  /// has no such characters.
  void begin_line(const Event& event, std::string_view line, bool is_plain) {
    return is_plain && !line.empty() ? begin_line(line) : begin_checked(event, line);
  }
  void begin_line(std::string_view line) {
    make_room(line.size());
    text(line);
  }

  /// Goes to the column in which the annotation of the line begins.
  void begin_annotation() {
    static constexpr std::string_view blanks = "                                                 ";
    static_assert(blanks.size() == width);
    const auto size = static_cast<std::size_t>(at_ - line_begin_);
    if (size < width) {
      std::memcpy(at_, blanks.data(), blanks.size());
      at_ = line_begin_ + width;
    }
    text(" # ");
  }

  void text(std::string_view words) {
    assert(words.size() <= static_cast<std::size_t>(end_ - at_));
    std::memcpy(at_, words.data(), words.size());
    at_ += words.size();
  }

  /// Returns what it has appended, valid until the line is ended.
  std::string_view decimal(std::uint64_t number) {
    char* const begin = at_;
    at_ = cmt::text::put_decimal(at_, number);
    return {begin, static_cast<std::size_t>(at_ - begin)};
  }
  void signed_decimal(std::int64_t number) { at_ = cmt::text::put_signed_decimal(at_, number); }
  void hex(std::uint64_t number) { at_ = cmt::text::put_hex(at_, number); }

  /// "16 bytes, allocated 1 lines" or "allocated 3.05 s": how large a block is and how long it has lived by a clock.
  void block_age(std::uint64_t size, std::uint64_t age, heap::Clock::Unit clock);

  /// "live 16 bytes in 2 blocks".
  void live_totals(std::uint64_t bytes, std::uint64_t blocks) {
    text("live ");
    decimal(bytes);
    text(" bytes in ");
    decimal(blocks);
    text(" blocks");
  }

  void end_line() {
    assert(at_ < end_);
    *at_++ = '\n';
  }

  /// All lines so far, valid until the next change.
  std::string_view lines() const { return {buffer_.get(), static_cast<std::size_t>(at_ - buffer_.get())}; }
  void clear() { at_ = line_begin_ = buffer_.get(); }

 private:
  static constexpr std::size_t width = 49;
  static constexpr std::size_t annotation_max = 1024;

  /// Begins a line of so many bytes and an annotation.
  void make_room(std::size_t size) {
    const std::size_t wanted = size + 2 * width + annotation_max;
    if (static_cast<std::size_t>(end_ - at_) < wanted) grow(wanted);
    line_begin_ = at_;
  }
  void grow(std::size_t wanted);
  void begin_checked(const Event& event, std::string_view line);

  std::unique_ptr<char[]> buffer_;
  char* at_ = nullptr;
  char* end_ = nullptr;
  char* line_begin_ = nullptr;
};

/// Appends a comment line for every block, the oldest first. Readers of traces skip such lines. `write` is called
/// whenever many lines were appended, and takes them.
///
///     # leak: 81d220b48<6655>, 8 bytes, allocated 5 lines before the end
void append_leaks(AnnotatedText& out, std::vector<heap::PlacedBlock> blocks, const heap::Clock& clock,
                  const std::function<void()>& write);

}  // namespace cmt::trace
