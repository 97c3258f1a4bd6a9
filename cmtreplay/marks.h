#pragma once

#include <cstdint>
#include <vector>

#include "cmtreplay/planner.h"

namespace cmt::replay {

/// A moment in the trace at which memory is measured.
struct Mark {
  std::uint64_t event = 0;  ///< events before it, of all kinds
  std::uint64_t word = 0;   ///< words of operations before it
  Live live;
};

/// Remembers moments while the length of the trace is not known yet. It keeps one event in 2^n; when there are too many
/// it forgets every other one and doubles the distance. So it holds 4,096 to 8,192, evenly spread, each exact.
class MarkKeeper {
 public:
  /// Every event, in order.
  void pass(const Mark& moment);

  /// At most `count` marks, as near as may be to equal parts of the trace; the last is its end. Each mark is another
  /// event.
  std::vector<Mark> choose(std::size_t count) const;

 private:
  static constexpr std::size_t kept_max = 8192;

  std::vector<Mark> kept_;
  std::uint64_t distance_ = 1;
  Mark last_;
};

}  // namespace cmt::replay
