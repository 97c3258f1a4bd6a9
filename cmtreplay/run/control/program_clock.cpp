// Adds up stretches to points of the program's clock.
#include "cmtreplay/run/control/program_clock.h"

#include <algorithm>
#include <cmath>

namespace cmt::replay {
namespace {

/// The program's time at a recorded one, as the worker reckons it.
std::uint64_t time_at(const std::vector<clock_point>& points, std::uint64_t ns) {
  return program_time(points.data(), static_cast<std::uint32_t>(points.size()), ns);
}

}  // namespace

std::uint64_t lost_ns(const RunStretch& stretch, std::uint32_t processors) {
  const auto elapsed = static_cast<double>(stretch.elapsed_ns), ran = static_cast<double>(stretch.ran_ns);
  const double waited = static_cast<double>(stretch.waited_ns), held = static_cast<double>(stretch.held_ns);
  const double wanted = ran + waited + held;
  if (wanted <= 0) return 0;
  const double on_processors = ran + waited;
  // The busiest thread's share of the waits for the recorder is that of its other times.
  const double all_busy = on_processors > 0 ? static_cast<double>(stretch.busy_ns) * (wanted / on_processors) : held;
  const double busy = std::min(std::max(all_busy, ran / std::max(processors, 1U)), elapsed);
  if (busy <= 0) return 0;
  const double at_once = std::min<double>(std::max(processors, 1U), std::max(wanted / busy, 1.0));
  const double lost = busy - ran / at_once;
  return lost <= 0 ? 0 : static_cast<std::uint64_t>(lost);
}

ProgramClock program_clock(const TracePlan& plan) {
  ProgramClock clock;
  if (plan.facts.recorded_ns == unknown || plan.stretches.empty()) return clock;
  clock.recorded_ns = plan.facts.recorded_ns;
  std::uint64_t recorded = 0, program = 0, program_at_begin = 0;
  double waited = 0, held = 0;
  clock.points.push_back({0, 0});
  for (const RunStretch& stretch : plan.stretches) {
    const std::uint64_t begin = recorded, lost = lost_ns(stretch, plan.processors);
    if (stretch.elapsed_ns > INT64_MAX - recorded) break;
    recorded += stretch.elapsed_ns;
    program += stretch.elapsed_ns - lost;
    if (recorded <= plan.begin_ns) {
      program_at_begin = program;
      continue;
    }
    // The part of the stretch before the first event.
    if (begin < plan.begin_ns) {
      const double share = static_cast<double>(plan.begin_ns - begin) / static_cast<double>(stretch.elapsed_ns);
      program_at_begin += static_cast<std::uint64_t>(static_cast<double>(stretch.elapsed_ns - lost) * share);
    }
    clock.points.push_back({recorded - plan.begin_ns, program - program_at_begin});
    waited += static_cast<double>(stretch.waited_ns);
    held += static_cast<double>(stretch.held_ns);
  }
  clock.program_ns = time_at(clock.points, clock.recorded_ns);
  if (waited + held > 0) {
    const auto lost = static_cast<double>(clock.recorded_ns - clock.program_ns);
    clock.held_ns = static_cast<std::uint64_t>(std::round(lost * held / (waited + held)));
    clock.waited_ns = clock.recorded_ns - clock.program_ns - clock.held_ns;
  }
  return clock;
}

}  // namespace cmt::replay
