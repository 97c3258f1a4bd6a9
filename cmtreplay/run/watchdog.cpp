#include "cmtreplay/run/watchdog.h"

#include <algorithm>

namespace cmt::replay {
namespace {

constexpr std::chrono::milliseconds between_checks_max{500};

std::uint32_t state_of(const lane& lane) { return __atomic_load_n(&lane.state, __ATOMIC_ACQUIRE); }

}  // namespace

bool Watchdog::hangs(std::span<const lane> lanes, Clock::time_point now) {
  std::uint64_t progress = 0;
  bool is_patient = false, works = false;
  for (const lane& lane : lanes) {
    const std::uint32_t state = state_of(lane);
    progress += __atomic_load_n(&lane.position, __ATOMIC_RELAXED) + state;
    is_patient = is_patient || state == lane_pacing || state == lane_touching;
    works = works || state == lane_running;
  }
  stood_ += std::min<Clock::duration>(now - checked_, between_checks_max);
  checked_ = now;
  if (progress_ != progress || is_patient || !works) {
    progress_ = progress;
    stood_ = {};
  }
  return stood_ >= patience_;
}

std::uint32_t Watchdog::hanging_lane(std::span<const lane> lanes) {
  std::uint32_t waits = 0;
  for (std::uint32_t i = 0; i < lanes.size(); ++i) {
    const std::uint32_t state = state_of(lanes[i]);
    if (state == lane_touching) return i;
    if (state != lane_running) continue;
    if (__atomic_load_n(&lanes[i].waits.waiting, __ATOMIC_RELAXED) == 0) return i;
    waits = i;
  }
  return waits;
}

}  // namespace cmt::replay
