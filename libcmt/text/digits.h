/// Numbers as text, for lines that are written by the million.
///
/// std::to_chars() first counts the digits and then divides once for every two of them, which takes 5 to 9 ns for the
/// tags and addresses of a trace. These functions compute eight digits at once in one word of 8 bytes, and shift out
/// the leading zeros. A number below 10^8 takes 2 to 3 ns, whatever its length.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace cmt::text {

/// The bytes that put_decimal() and put_hex() may write: the digits, and unused bytes after the last digit.
inline constexpr std::size_t number_room = 32;

/// The eight decimal digits of a number below 10^8 as bytes 0 to 9, the first in the lowest byte.
constexpr std::uint64_t eight_decimals(std::uint64_t number) {
  // Each step halves all parts at once: 12345678 becomes 1234|5678, then 12|34|56|78, then the digits. A multiplication
  // and a shift replace each division; they are exact for numbers as small as these parts.
  std::uint64_t parts = number / 10000 | number % 10000 << 32;
  const std::uint64_t hundreds = parts * 10486 >> 20 & 0x0000007f'0000007f;
  parts = hundreds | (parts - hundreds * 100) << 16;
  const std::uint64_t tens = parts * 103 >> 10 & 0x000f000f'000f000f;
  return tens | (parts - tens * 10) << 8;
}

/// The eight hexadecimal digits of a number below 2^32 as characters, the first in the lowest byte.
constexpr std::uint64_t eight_hex_digits(std::uint64_t number) {
  std::uint64_t parts = number >> 16 | (number & 0xffff) << 32;
  parts = (parts & 0x0000ff00'0000ff00) >> 8 | (parts & 0x000000ff'000000ff) << 16;
  parts = (parts & 0x00f000f0'00f000f0) >> 4 | (parts & 0x000f000f'000f000f) << 8;
  const std::uint64_t letters = (parts + 0x06060606'06060606) >> 4 & 0x01010101'01010101;  // a 1 where it is a to f
  return parts + 0x30303030'30303030 + letters * ('a' - '0' - 10);
}

inline char* put_word(char* at, std::uint64_t word) {
  std::memcpy(at, &word, sizeof word);
  return at + sizeof word;
}

inline constexpr std::uint64_t eight_zeros = 0x30303030'30303030;
inline constexpr std::uint64_t above_eight_decimals = 100'000'000;

/// Writes a number below 10^8 in decimal digits and returns the end. Needs number_room bytes at `at`.
inline char* put_short_decimal(char* at, std::uint64_t number) {
  if (number < 10) {
    *at = static_cast<char>('0' + number);
    return at + 1;
  }
  const std::uint64_t digits = eight_decimals(number);
  const int leading = std::countr_zero(digits) / 8;
  put_word(at, (digits + eight_zeros) >> leading * 8);
  return at + 8 - leading;
}

/// The same of any number.
inline char* put_decimal(char* at, std::uint64_t number) {
  if (number < above_eight_decimals) return put_short_decimal(at, number);
  const std::uint64_t high = number / above_eight_decimals;
  if (high < above_eight_decimals) {
    at = put_short_decimal(at, high);
  } else {
    at = put_word(put_short_decimal(at, high / above_eight_decimals),
                  eight_decimals(high % above_eight_decimals) + eight_zeros);
  }
  return put_word(at, eight_decimals(number % above_eight_decimals) + eight_zeros);
}

/// The same of a number that may be below 0.
inline char* put_signed_decimal(char* at, std::int64_t number) {
  if (number >= 0) return put_decimal(at, static_cast<std::uint64_t>(number));
  *at = '-';
  return put_decimal(at + 1, 0 - static_cast<std::uint64_t>(number));
}

/// The same in hexadecimal digits, in lower case.
inline char* put_hex(char* at, std::uint64_t number) {
  const int digits = number == 0 ? 1 : (67 - std::countl_zero(number)) / 4;
  const std::uint64_t first = number << (64 - 4 * digits);
  put_word(put_word(at, eight_hex_digits(first >> 32)), eight_hex_digits(first & 0xffffffff));
  return at + digits;
}

}  // namespace cmt::text
