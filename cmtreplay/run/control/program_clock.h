/// The times that the program would have had without the recorder and the load of the machine, for the recorded clock.
///
/// Example: a program takes 0.1 s and then sleeps for 20 s. While it is recorded beside a build, the 0.1 s become 5.6
/// s, in which an allocator purges that would not have purged. A trace says for each stretch of the recording how long
/// threads ran, waited for a processor and waited for the recorder (cmt::RunStretch). From each stretch this takes off
///
///     busy - ran / min(processors, (ran + waited + held) / busy)
///
/// `busy` is the time for which the busiest thread ran or waited, with its share of `held`: at least ran / processors,
/// and at most the stretch. Min(…) is how many threads could run at once. Alone they would have been done after ran
/// over that, and the rest of `busy` is lost. So a program with more threads than processors is not scaled for waiting
/// for itself, and a sleep never is. With one thread all waiting is taken off.
///
/// Not taken off: the recorder's own work in the program's threads, for which a trace has no measure, and the
/// disturbance of caches. Threads that take turns count as one that is less busy, so too little is taken off.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cmt/header.h"
#include "cmtreplay/plan/prepared_trace.h"
#include "cmtreplay/protocol.h"

namespace cmt::replay {

/// The time that a stretch took longer than without the recorder and others. At most its elapsed time.
std::uint64_t lost_ns(const RunStretch& stretch, std::uint32_t processors);

struct ProgramClock {
  /// Recorded times and those of the program, both since the first event and rising. Empty: they are equal.
  std::vector<clock_point> points = {};
  std::uint64_t recorded_ns = 0;  ///< from the first event to the last
  std::uint64_t program_ns = 0;   ///< the same by the program's time
  std::uint64_t waited_ns = 0;    ///< of the difference, for a processor
  std::uint64_t held_ns = 0;      ///< of the difference, for the recorder

  double scale() const { return static_cast<double>(program_ns) / static_cast<double>(recorded_ns); }
  /// Whether the scale is worth a line of the report.
  bool is_scaled() const { return recorded_ns - program_ns > recorded_ns / 50; }
};

/// A trace without stretches or times has no points.
ProgramClock program_clock(const TracePlan& plan);

}  // namespace cmt::replay
