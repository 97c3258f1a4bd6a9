#pragma once

#include <cstdint>
#include <string_view>

namespace cmt {

/// Bytes to a file or a pipe. Throws std::system_error. Borrows the descriptor.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}

  void write(std::string_view bytes);

  /// Bytes written so far.
  std::uint64_t offset() const { return offset_; }

 private:
  int fd_;
  std::uint64_t offset_ = 0;
};

}  // namespace cmt
