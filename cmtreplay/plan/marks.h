#pragma once

#include <cstdint>
#include <vector>

#include "cmt/event.h"
#include "cmtreplay/plan/planner.h"

namespace cmt::replay {

/// A moment in the trace at which memory is measured.
struct Mark {
  std::uint64_t event = 0;  ///< events before it, of all kinds
  Live live;
  std::uint64_t time_ns = unknown;         ///< recorded, of the event before it
  std::vector<std::uint64_t> positions{};  ///< where each lane stands; empty where the trace is streamed
};

/// Remembers moments while the length of the trace is not known yet. It keeps one event in 2^n; when there are too many
/// it forgets every other one and doubles the distance. So it holds 4,096 to 8,192, evenly spread, each exact; fewer
/// where there are so many lanes that their positions would take more than some 4 MB.
class MarkKeeper {
 public:
  /// Whether the moment after an event is one to be kept. Events are counted from 1, and asked for in order.
  bool wants(std::uint64_t event) const { return (event & (distance_ - 1)) == 0; }
  void keep(Mark moment);

  /// At most `count` marks, as near as may be to equal parts of the trace; the last is its end. Each mark is another
  /// event.
  std::vector<Mark> choose(std::size_t count, Mark end) const;

 private:
  static constexpr std::size_t kept_max = 8192;
  static constexpr std::size_t positions_max = 512 * 1024;

  std::vector<Mark> kept_;
  std::uint64_t distance_ = 1;
};

/// Puts a moment into marks that rise, for the nearest of them; not for the last, which is the end.
void include_mark(std::vector<Mark>& marks, const Mark& moment);

}  // namespace cmt::replay
