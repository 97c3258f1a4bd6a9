#pragma once

#include <charconv>
#include <cstdint>
#include <string>

namespace cmt::watch {

/// An address as smaps writes it: JSON's numbers have not enough digits for all of them.
inline std::string hex(std::uint64_t address) {
  char digits[16];
  return {digits, std::to_chars(digits, digits + sizeof digits, address, 16).ptr};
}

}  // namespace cmt::watch
