#include "cmtreport/model/changes.h"

namespace cmt::report {
namespace {

void append_number(std::string& bytes, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(0x80 | (number & 0x7f));
  bytes += static_cast<char>(number);
}

/// Small numbers of either sign become small ones: 0, -1, 1, -2, ...
std::uint64_t zigzag(std::uint64_t number) { return number << 1 ^ (0 - (number >> 63)); }
std::uint64_t from_zigzag(std::uint64_t number) { return number >> 1 ^ (0 - (number & 1)); }

}  // namespace

void PackedChanges::append(KeyId key, const Measures& measures) {
  std::uint64_t present = 0;
  for (std::size_t i = 0; i < measure_count; ++i) present |= std::uint64_t{measures.at(i) != 0} << i;
  append_number(bytes_, key);
  append_number(bytes_, present);
  for (std::size_t i = 0; i < measure_count; ++i) {
    if (measures.at(i) != 0) append_number(bytes_, zigzag(measures.at(i)));
  }
}

std::uint64_t PackedChanges::Cursor::number() {
  std::uint64_t number = 0;
  std::size_t at = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(rest[at++]);
    number |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) break;
  }
  rest.remove_prefix(at);
  return number;
}

Measures PackedChanges::Cursor::measures() {
  Measures measures;
  const std::uint64_t present = number();
  for (std::size_t i = 0; i < measure_count; ++i) {
    if ((present >> i & 1) != 0) measures.at(i) = from_zigzag(number());
  }
  return measures;
}

}  // namespace cmt::report
