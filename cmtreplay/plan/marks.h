#pragma once

#include <cstdint>
#include <vector>

#include "cmt/event.h"
#include "cmtreplay/plan/planner.h"

namespace cmt::replay {

/// A moment in the trace at which memory is measured.
struct Mark {
  std::uint64_t event = 0;  ///< events before it, of all kinds
  heap::LiveTotals live;
  std::uint64_t time_ns = unknown;         ///< recorded time of the event before it
  std::vector<std::uint64_t> positions{};  ///< of each lane, in words; empty where the trace is streamed
};

/// Collects candidates for marks while the length of the trace is not known yet: the moment after each 2^n-th event.
/// When there are too many it drops every other one and doubles the distance. So it holds 4,096 to 8,192 candidates at
/// equal distances; fewer where there are so many lanes that their positions would take more than some 4 MB.
class MarkCandidates {
 public:
  /// Whether the moment after an event is a candidate. Events are counted from 1, and come in order.
  bool wants(std::uint64_t event) const { return (event & (distance_ - 1)) == 0; }
  void add(Mark moment);

  /// At most `count` marks at different events, which divide the trace into parts as equal as the candidates allow; the
  /// last is its end.
  std::vector<Mark> choose(std::size_t count, Mark end) const;

 private:
  static constexpr std::size_t kept_max = 8192;
  static constexpr std::size_t positions_max = 512 * 1024;

  std::vector<Mark> kept_;
  std::uint64_t distance_ = 1;
};

/// Replaces the nearest of some marks in their order by this moment; the last one stays, since it is the end.
void include_mark(std::vector<Mark>& marks, const Mark& moment);

}  // namespace cmt::replay
