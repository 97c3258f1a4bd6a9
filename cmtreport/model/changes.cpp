// Packs the measures of a stack: a bit for each measure that is not 0, and the measures as varints.
#include "cmtreport/model/changes.h"

#include <array>

namespace cmt::report {
namespace {

constexpr std::size_t measures_max = (measure_count + 1) * format::varint_max;  // bytes

char* put_measures(char* at, const Measures& measures) {
  std::uint64_t present = 0;
  for (std::size_t i = 0; i < measure_count; ++i) present |= std::uint64_t{measures.at(i) != 0} << i;
  at = format::put_varint(at, present);
  for (; present != 0; present &= present - 1)
    at = format::put_varint(at, format::zigzag(measures.at(static_cast<std::size_t>(std::countr_zero(present)))));
  return at;
}

}  // namespace

std::string packed(const Measures& measures) {
  std::array<char, measures_max> bytes;
  return {bytes.data(), put_measures(bytes.data(), measures)};
}

void PackedChanges::append(KeyId key, const Measures& measures) {
  std::array<char, format::varint_max + measures_max> bytes;
  const char* const end = put_measures(format::put_varint(bytes.data(), key), measures);
  bytes_.append(bytes.data(), static_cast<std::size_t>(end - bytes.data()));
}

}  // namespace cmt::report
