#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cmt::format {

/// Numbers on the wire are LEB128: base 128, least significant group first, the high bit set on every byte but the
/// last.

inline void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

/// Bytes that put_varint() writes for a number of `bits` significant bits.
constexpr unsigned varint_size(unsigned bits) { return bits == 0 ? 1 : (bits + 6) / 7; }

/// Maps small numbers of either sign to small numbers: 0, -1, 1, -2 … to 0, 1, 2, 3 …
constexpr std::uint64_t zigzag(std::uint64_t difference) { return difference << 1 ^ (0 - (difference >> 63)); }

constexpr std::uint64_t unzigzag(std::uint64_t value) { return value >> 1 ^ (0 - (value & 1)); }

}  // namespace cmt::format
