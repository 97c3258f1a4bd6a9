#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>

namespace cmt {

/// What was wrong with a trace, and what was done about it. The values are on the wire (format-spec/cmt.md, "Totals")
/// and never change.
enum class Repair : std::uint8_t {
  not_understood = 0,     ///< a line or a record: dropped
  unmatched_free = 1,     ///< of an address where no block lives: dropped
  unmatched_realloc = 2,  ///< of an address where no block lives: taken as an allocation
  order_race = 3,         ///< an allocation that stands before the free which made room for it: moved behind it
  double_allocation = 4,  ///< at an address where a block lives: that one was ended first
  misfree = 5,            ///< of an address inside a block: that one was ended, and its head begun anew
  contradiction = 6,      ///< an event whose tag contradicts those before: dropped
  unknown_kind = 7,       ///< an event of a kind of a later version: taken as one that does the same to blocks
};

inline constexpr int repair_count = 8;

/// The name of a repair as JSON, text and tables give it: "order_race".
std::string_view name(Repair repair);

/// Repairs, counted by kind.
struct Repairs {
  std::array<std::uint64_t, repair_count> by_kind{};
  std::uint64_t other = 0;  ///< of which only the number is known

  std::uint64_t operator[](Repair repair) const { return by_kind[static_cast<std::size_t>(repair)]; }
  void add(Repair repair, std::uint64_t count = 1) { by_kind[static_cast<std::size_t>(repair)] += count; }
  std::uint64_t total() const { return std::accumulate(by_kind.begin(), by_kind.end(), other); }

  Repairs& operator+=(const Repairs& more) {
    for (std::size_t i = 0; i < by_kind.size(); ++i) by_kind[i] += more.by_kind[i];
    other += more.other;
    return *this;
  }
};

}  // namespace cmt
