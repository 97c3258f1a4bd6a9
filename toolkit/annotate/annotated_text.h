#pragma once

#include <cassert>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace cmt::heap {

/// A trace as text whose lines carry annotations behind " # ", from column 50 on or after the line where that is
/// longer:
///
///     free(81d3b83a0<6656>)                             # 16 bytes, allocated 1 lines ago
///
/// Collects lines in a buffer of its own and writes it in large pieces: some 5 ns a number. Every line has room for
/// 1 KiB of annotation.
class AnnotatedText {
 public:
  /// Borrows `fd`.
  explicit AnnotatedText(int fd);

  /// Begins a line, which is put together by the calls that follow until close().
  void open(std::string_view line) {
    if (room() < line.size() + width + annotation_max) flush();
    if (room() < line.size() + width + annotation_max) return write_through(line);
    text(line);
  }

  /// A line without an annotation.
  void bare(std::string_view line) {
    open(line);
    close();
  }

  /// Begins a line with one.
  void annotate(std::string_view line) {
    open(line);
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

  void close() { *at_++ = '\n'; }

  /// Writes what is still here. Not done by the destructor: it throws std::system_error.
  void flush();

 private:
  static constexpr std::size_t width = 49;
  static constexpr std::size_t annotation_max = 1024;
  static constexpr std::size_t capacity = 256 * 1024;

  char* end() const { return buffer_.get() + capacity; }
  std::size_t room() const { return static_cast<std::size_t>(end() - at_); }

  void write_through(std::string_view line);

  int fd_;
  std::unique_ptr<char[]> buffer_;
  char* at_;
};

}  // namespace cmt::heap
