#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "libcmt/format/varint.h"

namespace cmt::format {

/// Puts many varints into a string by way of a small buffer: a string checks its room for every byte.
class VarintWriter {
 public:
  /// `expected`: bytes in all, a guess.
  explicit VarintWriter(std::size_t expected = 0) { out_.reserve(expected); }

  void put(std::uint64_t value) {
    if (at_ > buffer_ + sizeof buffer_ - longest) flush();
    if (value < std::uint64_t{1} << 28) {
      put_short(static_cast<std::uint32_t>(value));
      return;
    }
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

  // Up to four bytes, without a branch that depends on how many.
  void put_short(std::uint32_t value) {
    const auto bytes = static_cast<unsigned>(std::bit_width(value | 1) + 6) * 37 >> 8;
    std::uint32_t spread = (value & 0x7f) | (value & 0x3f80) << 1 | (value & 0x1fc000) << 2 | (value & 0xfe00000) << 3;
    spread |= 0x808080 & ((1u << 8 * (bytes - 1)) - 1);
    if constexpr (std::endian::native == std::endian::big) spread = __builtin_bswap32(spread);
    std::memcpy(at_, &spread, sizeof spread);
    at_ += bytes;
  }

  void flush() {
    out_.append(buffer_, static_cast<std::size_t>(at_ - buffer_));
    at_ = buffer_;
  }

  std::string out_;
  char buffer_[1024];
  char* at_ = buffer_;
};

}  // namespace cmt::format
