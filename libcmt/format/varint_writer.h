#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "format/varint.h"

namespace cmt::format {

/// Puts many varints into a string by way of a small buffer: a string checks its room for every byte.
class VarintWriter {
 public:
  /// `expected`: bytes in all, a guess.
  explicit VarintWriter(std::size_t expected = 0) { out_.reserve(expected); }

  void put(std::uint64_t value) {
    if (at_ > buffer_ + sizeof buffer_ - longest) flush();
    while (value >= 0x80) {
      *at_++ = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    *at_++ = static_cast<char>(value);
  }

  void put(std::string_view bytes) {
    flush();
    out_ += bytes;
  }

  /// All that was put.
  std::string take() {
    flush();
    return std::move(out_);
  }

 private:
  static constexpr std::size_t longest = 10;

  void flush() {
    out_.append(buffer_, static_cast<std::size_t>(at_ - buffer_));
    at_ = buffer_;
  }

  std::string out_;
  char buffer_[1024];
  char* at_ = buffer_;
};

}  // namespace cmt::format
