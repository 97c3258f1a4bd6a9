#include "libcmt/format/address_model.h"

#include <bit>
#include <cstring>

namespace cmt::format {
namespace {

/// Addresses that are looked at together.
constexpr std::uint32_t group = 16;

using Lanes = std::uint32_t __attribute__((vector_size(16)));

Lanes load(const std::uint64_t* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

/// The lower halves of four addresses.
Lanes low_halves(const std::uint64_t* addresses) {
  return __builtin_shufflevector(load(addresses), load(addresses + 2), 0, 2, 4, 6);
}

/// Whether one of a group has the lower half of `address`. What is not there would cost 256 comparisons.
bool may_be_among(const std::uint64_t* addresses, std::uint64_t address) {
  const auto low = static_cast<std::uint32_t>(address);
  const Lanes wanted{low, low, low, low};
  const auto same = [&](std::uint32_t i) { return low_halves(addresses + i) == wanted; };
  const auto any = (same(0) | same(4)) | (same(8) | same(12));
  std::uint64_t halves[2];
  std::memcpy(halves, &any, sizeof halves);
  return (halves[0] | halves[1]) != 0;
}

}  // namespace

std::uint32_t AddressModel::Class::find_below(std::uint64_t address) const {
  const std::uint64_t* const end = freed_.data() + freed_.size();
  const auto limit = static_cast<std::uint32_t>(std::min<std::size_t>(freed_.size(), depth));
  for (std::uint32_t begin = 0; begin < limit; begin += group) {
    if (limit - begin >= group && !may_be_among(end - begin - group, address)) continue;
    const std::uint32_t to = std::min(begin + group, limit);
    for (std::uint32_t place = begin; place < to; ++place) {
      if (*(end - 1 - place) == address) return place;
    }
  }
  return depth;
}

void AddressModel::reset() {
  for (Class& each : classes_) each = Class{};
  last_address_ = last_size_ = 0;
}

std::uint32_t AddressModel::number_of_large(std::uint64_t size) {
  const std::uint64_t granules = size / 16 + (size % 16 + 23) / 16;
  return small_classes + static_cast<std::uint32_t>(std::bit_width(granules));
}

void AddressModel::forget_half(std::vector<std::uint64_t>& freed) {
  freed.erase(freed.begin(), freed.begin() + static_cast<std::ptrdiff_t>(freed.size() / 2));
}

std::uint64_t AddressModel::after(std::uint64_t address, std::uint64_t size, unsigned rounding) {
  switch (rounding) {
    case 0:
      return address + std::max<std::uint64_t>(32, (size + 23) & ~std::uint64_t{15});
    case 1:
      return address + std::max<std::uint64_t>(16, (size + 15) & ~std::uint64_t{15});
    case 2:
      return address + std::max<std::uint64_t>(8, (size + 7) & ~std::uint64_t{7});
    default:
      return address + size;
  }
}

}  // namespace cmt::format
