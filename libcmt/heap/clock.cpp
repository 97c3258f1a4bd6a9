#include "libcmt/heap/clock.h"

#include <array>

namespace cmt::heap {

std::optional<Clock::Unit> Clock::parse(std::string_view name) {
  for (const Unit unit : {Unit::events, Unit::time, Unit::bytes}) {
    if (Clock::name(unit) == name) return unit;
  }
  return std::nullopt;
}

std::string_view Clock::name(Unit unit) {
  static constexpr std::array<std::string_view, 3> names{"events", "time", "bytes"};
  return names[static_cast<std::size_t>(unit)];
}

std::string_view Clock::unit_text() const {
  static constexpr std::array<std::string_view, 3> units{"lines", "ns", "bytes"};
  return units[static_cast<std::size_t>(unit_)];
}

}  // namespace cmt::heap
