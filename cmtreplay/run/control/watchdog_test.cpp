// Tests which states of lanes count as a hang, and which lane hangs.
#include "cmtreplay/run/control/watchdog.h"

#include <doctest/doctest.h>

#include <vector>

using namespace cmt::replay;
using std::chrono::seconds;

namespace {

lane at(std::uint64_t position, lane_state state, bool waits = false) {
  lane its{};
  its.position = position;
  its.state = state;
  its.waits.waiting = waits ? 1 : 0;
  return its;
}

const Watchdog::Clock::time_point begin;
const Outside resting{};
constexpr std::chrono::milliseconds quarter{250};

}  // namespace

TEST_CASE("watchdog: whoever comes further does not hang") {
  Watchdog watchdog(10);
  for (int i = 0; i < 100; i += 9)
    CHECK(!watchdog.hangs(std::vector{at(static_cast<std::uint64_t>(i), lane_running)}, resting, begin + seconds(i)));
}

TEST_CASE("watchdog: a lane that stands in a call hangs, also among others that wait for it") {
  Watchdog watchdog(10);
  const std::vector lanes{at(5, lane_running, true), at(7, lane_running), at(9, lane_ended)};
  for (int i = 0; i < 40; ++i) CHECK(!watchdog.hangs(lanes, resting, begin + i * quarter));
  CHECK(watchdog.hangs(lanes, resting, begin + 40 * quarter));
  CHECK(Watchdog::hanging_lane(lanes) == 1);
}

TEST_CASE("watchdog: a time in which nobody looked is nobody's fault") {
  Watchdog watchdog(1);
  const std::vector lanes{at(5, lane_running)};
  CHECK(!watchdog.hangs(lanes, resting, begin));
  CHECK(!watchdog.hangs(lanes, resting, begin + seconds(3600)));
  CHECK(!watchdog.hangs(lanes, resting, begin + seconds(3600) + quarter));
  CHECK(watchdog.hangs(lanes, resting, begin + seconds(3600) + 2 * quarter));
}

TEST_CASE("watchdog: whoever has nothing to do, keeps the recorded pace, or touches a large block, does not hang") {
  for (const lane_state state : {lane_idle, lane_ended, lane_pacing, lane_unused, lane_touching}) {
    Watchdog watchdog(1);
    const std::vector lanes{at(5, state)};
    for (int i = 0; i < 40; ++i) CHECK(!watchdog.hangs(lanes, resting, begin + i * quarter));
  }
}

TEST_CASE("watchdog: of a worker that was killed, the lane that touched a block is named") {
  CHECK(Watchdog::hanging_lane(std::vector{at(0, lane_idle), at(1, lane_running, true), at(2, lane_touching)}) == 2);
}

TEST_CASE("watchdog: where all wait, one of them is named") {
  CHECK(Watchdog::hanging_lane(std::vector{at(0, lane_ended), at(1, lane_running, true)}) == 1);
}

TEST_CASE("watchdog: a worker at work outside the lanes hangs where it comes no further, and not where it rests") {
  const std::vector lanes{at(5, lane_ended), at(0, lane_unused)};
  const auto hangs = [&lanes](bool rests, std::uint32_t step) {
    Watchdog watchdog(1);
    bool does = false;
    for (std::uint32_t i = 0; i < 40; ++i) does = watchdog.hangs(lanes, {rests, i * step}, begin + i * quarter);
    return does;
  };
  CHECK(hangs(false, 0));
  CHECK(!hangs(false, 1));
  CHECK(!hangs(true, 0));
}

TEST_CASE("watchdog: a lane that waits for words is not outside") {
  Watchdog watchdog(1);
  const std::vector lanes{at(5, lane_idle), at(9, lane_ended)};
  for (int i = 0; i < 40; ++i) CHECK(!watchdog.hangs(lanes, {.rests = false}, begin + i * quarter));
}
