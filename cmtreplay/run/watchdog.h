/// Distinguishes a worker that hangs from one that is slow.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "cmtreplay/run/control_region.h"

namespace cmt::replay {

/// What a worker does outside the lanes.
struct Outside {
  bool rests = true;        ///< it waits for the parent
  std::uint32_t calls = 0;  ///< and checks of blocks, made so far
};

/// Tells a worker that hangs from one that is slow: it hangs where for some seconds no lane has come any further,
/// though there are operations to carry out, nor the worker where no lane runs: before it is ready, and after the end.
/// A lane that keeps the recorded pace may sleep as long as the program did, and one that touches a large block may
/// take as long as the kernel needs for its pages. Between two checks at most half a second counts: more means that
/// this process stood still too (Ctrl-Z, a halted virtual machine).
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Watchdog(unsigned seconds) : patience_(seconds) {}

  /// To be called at least twice a second.
  bool hangs(std::span<const lane> lanes, const Outside& outside, Clock::time_point now) {
    std::uint64_t progress = outside.calls;
    bool is_patient = false, works = false, is_outside = !outside.rests;
    for (const lane& lane : lanes) {
      const std::uint32_t state = state_of(lane);
      progress += __atomic_load_n(&lane.position, __ATOMIC_RELAXED) + state;
      is_patient = is_patient || state == lane_pacing || state == lane_touching;
      works = works || state == lane_running;
      is_outside = is_outside && (state == lane_unused || state == lane_ended);
    }
    stood_ += std::min<Clock::duration>(now - checked_, between_checks_max);
    checked_ = now;
    if (progress_ != progress || is_patient || !(works || is_outside)) {
      progress_ = progress;
      stood_ = {};
    }
    return stood_ >= patience_;
  }

  /// The lane that touches a block, or is in a call that does not return; else one that waits; else lane 0.
  static std::uint32_t hanging_lane(std::span<const lane> lanes) {
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

 private:
  static constexpr std::chrono::milliseconds between_checks_max{500};

  static std::uint32_t state_of(const lane& lane) { return __atomic_load_n(&lane.state, __ATOMIC_ACQUIRE); }

  std::chrono::seconds patience_;
  std::optional<std::uint64_t> progress_;
  Clock::time_point checked_;
  Clock::duration stood_{};
};

}  // namespace cmt::replay
