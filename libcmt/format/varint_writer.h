#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

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
    if (bytes.size() > static_cast<std::size_t>(buffer_ + sizeof buffer_ - at_)) flush();
    if (bytes.size() > sizeof buffer_) {
      out_ += bytes;
    } else {
      at_ = std::copy(bytes.begin(), bytes.end(), at_);
    }
  }

  /// Bytes put so far.
  std::size_t size() const { return out_.size() + static_cast<std::size_t>(at_ - buffer_); }

  /// All that was put; nothing is left.
  std::string take() {
    flush();
    return std::exchange(out_, {});
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
