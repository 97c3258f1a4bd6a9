#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cmt/event.h"

namespace cmt::heap {

/// What ages are counted in.
///
/// - events: the lines of a text without comments. What the original counted, and what any trace has.
/// - time: nanoseconds, where they were recorded.
/// - bytes: asked for meanwhile by all allocations. The clock of garbage collection (Barrett and Zorn, "Using lifetime
///   predictors to improve memory allocation performance", 1993): the same for a fast and for a slow machine, and it
///   stands still while a program allocates nothing.
class Clock {
 public:
  enum class Unit { events, time, bytes };

  explicit Clock(Unit unit) : unit_(unit) {}

  /// "events", "time" or "bytes".
  static std::optional<Unit> parse(std::string_view name);
  static std::string_view name(Unit unit);

  /// What an annotation calls it: "lines", "ns", "bytes".
  std::string_view unit_text() const;

  Unit unit() const { return unit_; }

  /// Before an event's effects.
  void begin(const Event& event) {
    if (unit_ == Unit::events) ++now_;
    if (unit_ == Unit::time && event.time_ns != unknown && event.time_ns > now_) now_ = event.time_ns;
  }

  /// After it has ended a block and before it makes one: the bytes that it asks for are not part of any age that it
  /// ends or begins.
  void allocate(std::uint64_t bytes) {
    if (unit_ == Unit::bytes) now_ += bytes;
  }

  std::uint64_t now() const { return now_; }

 private:
  Unit unit_;
  std::uint64_t now_ = 0;
};

}  // namespace cmt::heap
