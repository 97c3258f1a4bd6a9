#include "cmtreplay/run/watchdog.h"

#include <algorithm>

namespace cmt::replay {
namespace {

constexpr std::chrono::milliseconds between_checks_max{500};

std::uint32_t state_of(const lane& lane) { return __atomic_load_n(&lane.state, __ATOMIC_ACQUIRE); }

}  // namespace

bool Watchdog::hangs(std::span<const lane> lanes, Clock::time_point now) {
  std::uint64_t progress = 0;
  bool paces = false, works = false;
  for (const lane& lane : lanes) {
    const std::uint32_t state = state_of(lane);
    progress += __atomic_load_n(&lane.position, __ATOMIC_RELAXED) + state;
    paces = paces || state == lane_pacing;
    works = works || state == lane_running;
  }
  stood_ += std::min<Clock::duration>(now - checked_, between_checks_max);
  checked_ = now;
  if (progress_ != progress || paces || !works) {
    progress_ = progress;
    stood_ = {};
  }
  return stood_ >= patience_;
}

std::uint32_t Watchdog::hanging_lane(std::span<const lane> lanes) {
  std::uint32_t waits = 0;
  for (std::uint32_t i = 0; i < lanes.size(); ++i) {
    if (state_of(lanes[i]) != lane_running) continue;
    if (__atomic_load_n(&lanes[i].waits.waiting, __ATOMIC_RELAXED) == 0) return i;
    waits = i;
  }
  return waits;
}

}  // namespace cmt::replay
