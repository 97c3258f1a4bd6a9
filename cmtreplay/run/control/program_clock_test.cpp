// Tests what is taken off the recorded time, and how the points follow the first event.
#include "cmtreplay/run/control/program_clock.h"

#include <doctest/doctest.h>

using namespace cmt::replay;
using cmt::RunStretch;

namespace {

constexpr std::uint64_t a_ms = 1'000'000;

TracePlan plan_of(std::vector<RunStretch> stretches, std::uint64_t begin_ns, std::uint64_t recorded_ns) {
  TracePlan plan;
  plan.stretches = std::move(stretches);
  plan.processors = 2;
  plan.begin_ns = begin_ns;
  plan.facts.recorded_ns = recorded_ns;
  return plan;
}

std::uint64_t program_time_at(const ProgramClock& clock, std::uint64_t ns) {
  return program_time(clock.points.data(), static_cast<std::uint32_t>(clock.points.size()), ns);
}

}  // namespace

TEST_CASE("program clock: all waiting of one thread is taken off, and a sleep is not") {
  CHECK(
      lost_ns({.elapsed_ns = 20 * a_ms, .ran_ns = 5 * a_ms, .waited_ns = 9 * a_ms, .held_ns = 0, .busy_ns = 14 * a_ms},
              2) == 9 * a_ms);
  CHECK(
      lost_ns({.elapsed_ns = 20 * a_ms, .ran_ns = 5 * a_ms, .waited_ns = 0, .held_ns = 15 * a_ms, .busy_ns = 5 * a_ms},
              2) == 15 * a_ms);
  CHECK(lost_ns({.elapsed_ns = 20 * a_ms, .held_ns = 15 * a_ms}, 2) == 15 * a_ms);
  CHECK(lost_ns({.elapsed_ns = 20'000 * a_ms, .ran_ns = 5 * a_ms, .busy_ns = 5 * a_ms}, 2) == 0);
  CHECK(lost_ns({}, 0) == 0);
}

TEST_CASE("program clock: threads that wait for each other are not scaled, and those that others starve are") {
  // Four threads on two processors, all the time.
  CHECK(lost_ns({.elapsed_ns = 20 * a_ms, .ran_ns = 40 * a_ms, .waited_ns = 40 * a_ms, .busy_ns = 20 * a_ms}, 2) == 0);
  // The same in half of the time, with a sleep after it.
  CHECK(lost_ns({.elapsed_ns = 20 * a_ms, .ran_ns = 20 * a_ms, .waited_ns = 20 * a_ms, .busy_ns = 10 * a_ms}, 2) == 0);
  // Somebody else has one of the processors.
  CHECK(lost_ns({.elapsed_ns = 20 * a_ms, .ran_ns = 20 * a_ms, .waited_ns = 60 * a_ms, .busy_ns = 20 * a_ms}, 2) ==
        10 * a_ms);
  // Two threads that never wait.
  CHECK(lost_ns({.elapsed_ns = 20 * a_ms, .ran_ns = 40 * a_ms, .busy_ns = 20 * a_ms}, 2) == 0);
}

TEST_CASE("program clock: a stretch never takes less than no time, whatever a file states") {
  const std::uint64_t most = cmt::stretch_ns_limit;
  for (const RunStretch& stretch :
       {RunStretch{.elapsed_ns = 5, .waited_ns = most}, RunStretch{.elapsed_ns = 5, .ran_ns = most, .busy_ns = most},
        RunStretch{.elapsed_ns = 5, .ran_ns = 1, .waited_ns = most, .held_ns = most, .busy_ns = most}})
    CHECK(lost_ns(stretch, 2) <= 5);
  const ProgramClock clock = program_clock(
      plan_of({{.elapsed_ns = most}, {.elapsed_ns = most}, {.elapsed_ns = most, .waited_ns = most}}, 0, 100));
  CHECK(program_time_at(clock, 50) == 50);
}

TEST_CASE("program clock: a burst is scaled, the sleep after it keeps its length") {
  const ProgramClock clock = program_clock(plan_of({{.elapsed_ns = 100 * a_ms,
                                                     .ran_ns = 20 * a_ms,
                                                     .waited_ns = 60 * a_ms,
                                                     .held_ns = 20 * a_ms,
                                                     .busy_ns = 80 * a_ms},
                                                    {.elapsed_ns = 900 * a_ms}},
                                                   0, 1000 * a_ms));
  CHECK(program_time_at(clock, 0) == 0);
  CHECK(program_time_at(clock, 50 * a_ms) == 10 * a_ms);
  CHECK(program_time_at(clock, 100 * a_ms) == 20 * a_ms);
  CHECK(program_time_at(clock, 1000 * a_ms) == 920 * a_ms);
  CHECK(program_time_at(clock, 1200 * a_ms) == 1120 * a_ms);
  CHECK(clock.scale() == doctest::Approx(0.92));
  CHECK(clock.waited_ns == 60 * a_ms);
  CHECK(clock.held_ns == 20 * a_ms);
  CHECK(clock.is_scaled());
}

TEST_CASE("program clock: it begins at the first event, and a trace without stretches is as recorded") {
  const std::vector<RunStretch> stretches(
      4, {.elapsed_ns = 10 * a_ms, .ran_ns = 5 * a_ms, .waited_ns = 5 * a_ms, .busy_ns = 10 * a_ms});
  const ProgramClock clock = program_clock(plan_of(stretches, 16 * a_ms, 20 * a_ms));
  CHECK(program_time_at(clock, 4 * a_ms) == 2 * a_ms);
  CHECK(program_time_at(clock, 20 * a_ms) == 10 * a_ms);
  CHECK(program_clock(plan_of({}, 0, 5)).points.empty());
  CHECK(program_clock(plan_of(stretches, 0, cmt::unknown)).points.empty());
  CHECK(program_time(nullptr, 0, 77) == 77);
}
