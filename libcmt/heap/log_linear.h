// Classes of sizes and lifetimes, for histograms that can be added class by class.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace cmt::heap {

/// Classes of numbers for histograms: one class for every number below 2^bits, and 2^bits classes of equal width for
/// every power of two above. Every 64-bit number has a class, whose bounds are within 1/2^bits of the number.
/// Histograms of the same `bits` are added class by class.
///
///     with 2 bits    0, 1, 2, 3, 4, 5, 6, 7, 8-9, 10-11, 12-13, 14-15, 16-19, …
///
/// The method is that of HdrHistogram (Tene) and of jemalloc's size classes.
template <unsigned bits>
struct LogLinear {
  static constexpr std::size_t count = (64 - bits + 1) << bits;

  static std::size_t index(std::uint64_t number) {
    if (number < per_doubling) return static_cast<std::size_t>(number);
    const unsigned shift = static_cast<unsigned>(std::bit_width(number)) - 1 - bits;
    return (std::size_t{shift} << bits) + static_cast<std::size_t>(number >> shift);
  }

  /// The least number of a class.
  static std::uint64_t low(std::size_t index) {
    assert(index < count);
    if (index < per_doubling) return index;
    const std::size_t shift = (index >> bits) - 1;
    return (per_doubling + index % per_doubling) << shift;
  }

  /// The greatest number of a class.
  static std::uint64_t high(std::size_t index) {
    return index + 1 == count ? std::numeric_limits<std::uint64_t>::max() : low(index + 1) - 1;
  }

 private:
  static constexpr std::uint64_t per_doubling = std::uint64_t{1} << bits;
};

/// Sizes: four classes a doubling, as jemalloc has.
using SizeClasses = LogLinear<2>;

/// Lifetimes: eight classes a doubling.
using AgeClasses = LogLinear<3>;

}  // namespace cmt::heap
