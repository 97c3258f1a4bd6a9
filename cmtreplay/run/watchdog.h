#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "cmtreplay/run/control_region.h"

namespace cmt::replay {

/// Tells a worker that hangs from one that is slow: in so many seconds no lane has come any further, though there is
/// something to do. A lane that keeps the recorded pace may sleep as long as the program did. Where nobody looked for a
/// while all of us stood still (Ctrl-Z, a virtual machine that is halted): of that half a second counts.
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Watchdog(unsigned seconds) : patience_(seconds) {}

  /// Looks at the lanes, now and then. True: it hangs.
  bool look(std::span<const lane> lanes, Clock::time_point now);

  /// The lane that is in a call that does not return; else one that waits; else lane 0.
  static std::uint32_t culprit(std::span<const lane> lanes);

 private:
  std::chrono::seconds patience_;
  std::optional<std::uint64_t> progress_;
  Clock::time_point looked_;
  Clock::duration stood_{};
};

}  // namespace cmt::replay
