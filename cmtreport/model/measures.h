/// The figures that a report keeps for each stack and interval.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cmt::report {

/// A figure of the allocations of a call stack in one interval of a trace. The order is that of a report's `deltas`.
enum class Measure : std::uint8_t {
  allocated_bytes,
  allocated_blocks,
  live_bytes,
  live_blocks,
  interval_peak_bytes,
  interval_peak_blocks,
  temporary_blocks,
  temporary_bytes,
  short_lived_blocks,
  other_thread_blocks,
  reallocated_blocks,
  untouched_bytes,
  leaked_bytes,
  leaked_blocks,
};

inline constexpr std::size_t measure_count = 14;

struct MeasureText {
  std::string_view name;
  std::string_view doc;
};

/// By Measure.
inline constexpr std::array<MeasureText, measure_count> measure_texts{{
    {"allocated_bytes", "bytes asked for in the interval"},
    {"allocated_blocks", "blocks made in it"},
    {"live_bytes", "live bytes at its end less those at its start"},
    {"live_blocks", "live blocks at its end less those at its start"},
    {"interval_peak_bytes", "live bytes at the interval's moment of most live bytes less those at its start"},
    {"interval_peak_blocks", "live blocks at that moment less those at its start"},
    {"temporary_blocks", "blocks freed by the next event of the thread that made them, by the interval of the free"},
    {"temporary_bytes", "their bytes"},
    {"short_lived_blocks", "blocks ended in it with a lifetime up to short_lived_max events"},
    {"other_thread_blocks", "blocks ended in it by another thread than the one that made them"},
    {"reallocated_blocks", "blocks made in it by a realloc of another block"},
    {"untouched_bytes", "bytes that were never touched, of blocks that ended in it or, in the last one, are live"},
    {"leaked_bytes", "bytes of blocks made in it that are still live at the end of the trace"},
    {"leaked_blocks", "blocks made in it that are still live at the end of the trace"},
}};

/// A figure for each measure. Sums are modulo 2^64, since a damaged trace may state any size.
class Measures {
 public:
  std::uint64_t& operator[](Measure measure) { return values_[static_cast<std::size_t>(measure)]; }
  std::uint64_t operator[](Measure measure) const { return values_[static_cast<std::size_t>(measure)]; }
  std::uint64_t& at(std::size_t index) { return values_[index]; }
  std::uint64_t at(std::size_t index) const { return values_[index]; }

  Measures& operator+=(const Measures& more) {
    for (std::size_t i = 0; i < measure_count; ++i) values_[i] += more.values_[i];
    return *this;
  }

 private:
  std::array<std::uint64_t, measure_count> values_{};
};

}  // namespace cmt::report
