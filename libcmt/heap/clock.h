// The clock by which ages of blocks are measured: events, time, or bytes allocated.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cmt/event.h"

namespace cmt::heap {

/// Ages have one of three units:
///
/// - events: the number of events, equal to a text's lines without comments. Every trace has this unit.
/// - time: nanoseconds, if the trace has times.
/// - bytes: bytes allocated meanwhile. This is the clock of garbage collection (Barrett and Zorn, "Using lifetime
///   predictors to improve memory allocation performance", 1993). It is the same on a fast and on a slow machine, and
///   stops while a program allocates nothing.
class Clock {
 public:
  enum class Unit { events, time, bytes };

  explicit Clock(Unit unit) : unit_(unit) {}

  /// "events", "time" or "bytes".
  static std::string_view name(Unit unit) { return names[static_cast<std::size_t>(unit)]; }
  static std::optional<Unit> parse(std::string_view name) {
    const auto* const found = std::find(names.begin(), names.end(), name);
    return found == names.end() ? std::nullopt : std::optional(static_cast<Unit>(found - names.begin()));
  }

  /// The unit as annotations write it: "lines", "ns", "bytes".
  std::string_view unit_text() const {
    static constexpr std::array<std::string_view, 3> units{"lines", "ns", "bytes"};
    return units[static_cast<std::size_t>(unit_)];
  }

  Unit unit() const { return unit_; }

  /// Advances to an event. To be called before the event ends or makes a block.
  void advance_to(const Event& event) {
    if (unit_ == Unit::events) ++now_;
    if (unit_ == Unit::time && event.time_ns != unknown && event.time_ns > now_) now_ = event.time_ns;
  }

  /// Counts the bytes that an event asks for. To be called after it has ended a block and before it makes one: they
  /// belong to the age of neither.
  void count_allocated(std::uint64_t bytes) {
    if (unit_ == Unit::bytes) now_ += bytes;
  }

  std::uint64_t now() const { return now_; }
  /// Sets the clock, for a trace that is not read from its begin: to the value after the events before.
  void start_at(std::uint64_t now) { now_ = now; }

 private:
  static constexpr std::array<std::string_view, 3> names{"events", "time", "bytes"};

  Unit unit_;
  std::uint64_t now_ = 0;
};

}  // namespace cmt::heap
