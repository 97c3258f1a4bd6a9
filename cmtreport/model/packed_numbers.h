#pragma once

#include <cstddef>
#include <cstdint>

namespace cmt::report {

inline constexpr std::size_t packed_number_max = 10;  ///< bytes

/// Writes a number with seven bits a byte, and returns where it ends.
inline char* put_number(char* at, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) *at++ = static_cast<char>(0x80 | (number & 0x7f));
  *at++ = static_cast<char>(number);
  return at;
}

/// Reads one, and moves behind it.
inline std::uint64_t take_number(const char*& at) {
  auto byte = static_cast<unsigned char>(*at++);
  std::uint64_t number = byte & 0x7fu;
  for (unsigned shift = 7; byte >= 0x80; shift += 7) {
    byte = static_cast<unsigned char>(*at++);
    number |= std::uint64_t{byte & 0x7fu} << shift;
  }
  return number;
}

/// Moves behind one.
inline void skip_number(const char*& at) {
  while (static_cast<unsigned char>(*at++) >= 0x80) {
  }
}

/// How many bytes it takes.
inline std::size_t number_size(std::uint64_t number) {
  std::size_t size = 1;
  for (; number >= 0x80; number >>= 7) ++size;
  return size;
}

}  // namespace cmt::report
