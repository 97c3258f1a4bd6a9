#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "cmtreplay/run/control_region.h"

namespace cmt::replay {

/// Tells a worker that hangs from one that is slow: it hangs where for some seconds no lane has come any further,
/// though there are operations to carry out. A lane that keeps the recorded pace may sleep as long as the program did,
/// and one that touches a large block may take as long as the kernel needs for its pages.
/// Between two checks at most half a second counts: more means that this process stood still too (Ctrl-Z, a halted
/// virtual machine).
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Watchdog(unsigned seconds) : patience_(seconds) {}

  /// To be called at least twice a second.
  bool hangs(std::span<const lane> lanes, Clock::time_point now);

  /// The lane that touches a block, or is in a call that does not return; else one that waits; else lane 0.
  static std::uint32_t hanging_lane(std::span<const lane> lanes);

 private:
  std::chrono::seconds patience_;
  std::optional<std::uint64_t> progress_;
  Clock::time_point checked_;
  Clock::duration stood_{};
};

}  // namespace cmt::replay
