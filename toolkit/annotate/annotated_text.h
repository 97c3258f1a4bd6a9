#pragma once

#include <cassert>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcmt/heap/address_index.h"
#include "libcmt/heap/clock.h"
#include "libcmt/trace/files.h"

namespace cmt::annotate {

/// A trace as text whose lines carry annotations. An annotation follows " # ", in column 50 or after a longer line:
///
///     free(81d3b83a0<6656>)                             # 16 bytes, allocated 1 lines ago
///
/// Lines are collected in a buffer that is written in pieces of 256 KiB; a number costs some 5 ns. An annotation has at
/// most 1 KiB.
class AnnotatedText {
 public:
  /// Borrows `fd`.
  explicit AnnotatedText(int fd);

  /// Begins a line. The calls that follow append to it until end_line().
  void begin_line(std::string_view line) {
    if (room() < line.size() + width + annotation_max) flush();
    if (room() < line.size() + width + annotation_max) return out_.write(line);
    text(line);
  }

  /// A line without an annotation.
  void plain_line(std::string_view line) {
    begin_line(line);
    end_line();
  }

  /// Begins a line that has one.
  void begin_annotated_line(std::string_view line) {
    begin_line(line);
    for (std::size_t column = line.size(); column < width; ++column) *at_++ = ' ';
    text(" # ");
  }

  void text(std::string_view words) {
    assert(words.size() <= room());
    std::memcpy(at_, words.data(), words.size());
    at_ += words.size();
  }

  void decimal(std::uint64_t number) { at_ = std::to_chars(at_, end(), number).ptr; }
  void signed_decimal(std::int64_t number) { at_ = std::to_chars(at_, end(), number).ptr; }
  void hex(std::uint64_t number) { at_ = std::to_chars(at_, end(), number, 16).ptr; }

  /// "16 bytes, allocated 1 lines": how large a block is and how long it has lived by the clock.
  void block_age(std::uint64_t size, std::uint64_t born, const heap::Clock& clock) {
    decimal(size);
    text(" bytes, allocated ");
    decimal(clock.now() - born);
    text(" ");
    text(clock.unit_text());
  }

  /// "live 16 bytes in 2 blocks".
  void live_totals(std::uint64_t bytes, std::uint64_t blocks) {
    text("live ");
    decimal(bytes);
    text(" bytes in ");
    decimal(blocks);
    text(" blocks");
  }

  void end_line() { *at_++ = '\n'; }

  /// Writes the buffer. The destructor does not, as this throws std::system_error.
  void flush();

 private:
  static constexpr std::size_t width = 49;
  static constexpr std::size_t annotation_max = 1024;
  static constexpr std::size_t capacity = 256 * 1024;

  char* end() const { return buffer_.get() + capacity; }
  std::size_t room() const { return static_cast<std::size_t>(end() - at_); }

  Output out_;
  std::unique_ptr<char[]> buffer_;
  char* at_;
};

/// A block as traces name it: "7ffd30a51000<12>".
std::string block_text(const heap::PlacedBlock& block);

/// Appends a comment line for every block, the oldest first. A trace with such lines reads as one without.
///
///     # leak: 81d220b48<6655>, 8 bytes, allocated 5 lines before the end
void append_leaks(AnnotatedText& out, std::vector<heap::PlacedBlock> blocks, const heap::Clock& clock);

}  // namespace cmt::annotate
