#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "libcmt/format/varint.h"

namespace cmt::format {

/// What is wrong with bytes, without the file that they came from: the layer above adds its name and offset.
class WireError : public std::runtime_error {
 public:
  WireError(std::uint64_t offset, const std::string& what) : std::runtime_error(what), offset_(offset) {}

  /// From the begin of what was decoded.
  std::uint64_t offset() const { return offset_; }

 private:
  std::uint64_t offset_;
};

/// An offset as messages have it: "0x1f3".
inline std::string hex_text(std::uint64_t offset) {
  std::array<char, 16> digits;
  return "0x" + std::string(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), offset, 16).ptr);
}

/// The one way in which bytes are read: every step is checked against the end. Throws WireError.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()) {}

  bool at_end() const { return at_ == end_; }
  std::uint64_t offset() const { return static_cast<std::uint64_t>(at_ - begin_); }

  std::uint64_t varint() {
    if (at_ != end_ && static_cast<signed char>(*at_) >= 0) return static_cast<std::uint64_t>(*at_++);
    if (end_ - at_ >= 2 && static_cast<signed char>(at_[1]) >= 0) {
      const std::uint64_t value = (static_cast<std::uint64_t>(at_[1]) << 7) | (static_cast<std::uint64_t>(*at_) & 0x7f);
      at_ += 2;
      return value;
    }
    return long_varint();
  }

  /// A varint that may not exceed `limit`; `what` names it in the message.
  std::uint64_t varint(std::uint64_t limit, const char* what) {
    const std::uint64_t at = offset();
    const std::uint64_t value = varint();
    if (value > limit) throw WireError(at, std::string(what) + " " + std::to_string(value) + " is above its limit");
    return value;
  }

  std::string_view bytes(std::uint64_t count) {
    if (count > static_cast<std::uint64_t>(end_ - at_)) throw WireError(offset(), "cut off");
    const std::string_view taken(at_, count);
    at_ += count;
    return taken;
  }

  std::uint32_t u32() {
    std::uint32_t value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }

  std::uint64_t u64() {
    std::uint64_t value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::uint64_t long_varint() {
    std::uint64_t value = 0;
    const std::uint64_t start = offset();
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) throw WireError(start, "a number is cut off");
      const auto byte = static_cast<unsigned char>(*at_++);
      if (shift == 63 && byte > 1) break;
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw WireError(start, "a number of more than 64 bits");
  }

  const char* begin_;
  const char* at_;
  const char* end_;
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fixed integers on the wire are little-endian, and copied");

inline void put_u32(std::string& out, std::uint32_t value) { out.append(reinterpret_cast<const char*>(&value), 4); }
inline void put_u64(std::string& out, std::uint64_t value) { out.append(reinterpret_cast<const char*>(&value), 8); }

}  // namespace cmt::format
