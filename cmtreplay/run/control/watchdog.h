/// Distinguishes a worker that hangs from one that is slow.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "cmtreplay/run/control/control_region.h"

namespace cmt::replay {

/// The worker's activity outside of the lanes.
struct Outside {
  bool rests = true;        ///< it waits for the parent
  std::uint32_t calls = 0;  ///< calls, and checks of blocks, so far
};

/// Distinguishes a worker that hangs from one that is slow. A worker hangs if one of two conditions is true for some
/// seconds:
///
/// - Operations are left to carry out, but no lane has come any further.
///
/// - No lane runs (before the worker is ready, and after the end), and the worker has made no call outside of the
/// lanes.
///
/// Two kinds of lanes may take longer. One that keeps the recorded pace may sleep as long as the program did. One that
/// touches a large block may take as long as the kernel needs for its pages.
///
/// Between two checks at most half a second counts. A longer time means that this process was stopped, too (Ctrl-Z, a
/// halted virtual machine).
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Watchdog(unsigned seconds) : patience_(seconds) {}

  /// Whether the worker hangs. Has to be called at least twice a second.
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

  /// The lane that touches a block, or whose call does not return. If there is none: one that waits, or lane 0.
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
