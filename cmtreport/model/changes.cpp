#include "cmtreport/model/changes.h"

#include <array>

namespace cmt::report {
namespace {

char* put_number(char* at, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) *at++ = static_cast<char>(0x80 | (number & 0x7f));
  *at++ = static_cast<char>(number);
  return at;
}

/// Small numbers of either sign become small ones: 0, -1, 1, -2, ...
std::uint64_t zigzag(std::uint64_t number) { return number << 1 ^ (0 - (number >> 63)); }

}  // namespace

void PackedChanges::append(KeyId key, const Measures& measures) {
  constexpr std::size_t longest = 10;  // bytes of a number
  std::array<char, (measure_count + 2) * longest> bytes;
  std::uint64_t present = 0;
  for (std::size_t i = 0; i < measure_count; ++i) present |= std::uint64_t{measures.at(i) != 0} << i;
  char* at = put_number(put_number(bytes.data(), key), present);
  for (; present != 0; present &= present - 1)
    at = put_number(at, zigzag(measures.at(static_cast<std::size_t>(std::countr_zero(present)))));
  bytes_.append(bytes.data(), static_cast<std::size_t>(at - bytes.data()));
}

}  // namespace cmt::report
