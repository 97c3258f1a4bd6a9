#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cmt {

/// Bytes of a file or a pipe through one growing window. Throws std::system_error.
class Input {
 public:
  /// Takes over `fd`.
  Input(int fd, std::string name);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// At least `count` bytes ahead if the input has them, else all that are left. Valid until the next call.
  std::string_view peek(std::size_t count);

  /// Steps over bytes that peek() has shown.
  void skip(std::size_t count) { begin_ += count; }

  /// Offset of the next byte.
  std::uint64_t offset() const { return window_offset_ + begin_; }

  /// Bytes in all; 0 where that is not known (a pipe).
  std::uint64_t size() const { return size_; }

  bool can_seek() const { return can_seek_; }

  /// Up to `count` bytes from `offset`, the window untouched. Only where can_seek().
  std::string at(std::uint64_t offset, std::size_t count) const;

  const std::string& name() const { return name_; }

  /// "app.cmt: offset 0x1f3", for messages.
  std::string place(std::uint64_t offset) const;

 private:
  bool fill();

  int fd_;
  std::string name_;
  bool can_seek_ = false;
  bool at_end_ = false;
  std::uint64_t size_ = 0;
  std::uint64_t window_offset_ = 0;  // of window_[0]
  std::vector<char> window_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

/// Opens a path for reading; "-" is standard input. Throws std::system_error that names the path.
int open_input(const std::string& path);

}  // namespace cmt
