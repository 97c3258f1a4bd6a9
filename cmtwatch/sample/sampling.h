#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <string>

#include "cmtwatch/sample/pause.h"
#include "cmtwatch/sample/process_set.h"
#include "cmtwatch/sample/traced.h"

namespace cmt::watch {

/// How often, and when it is enough.
struct Pace {
  std::int64_t interval_ns = 0;
  double cost_share_max = 1;             ///< of one processor
  std::optional<std::uint64_t> count{};  ///< of samples
  std::optional<std::int64_t> duration_ns{};
};

/// What a watch amounts to.
struct Outcome {
  std::uint64_t samples = 0;
  std::uint64_t missed = 0;   ///< moments that passed while another sample was taken, or the machine was busy
  std::uint64_t skipped = 0;  ///< moments left out because samples cost more than their share
  std::int64_t elapsed_ns = 0;
  std::int64_t cost_ns = 0;  ///< processor time that the watch took
  bool gone = false;         ///< the process had ended
  std::optional<Sample> peak{};
  std::optional<Traced> traced{};
  PauseCost pauses{};
  std::string refusal{};  ///< why a process could not be paused, which ended the watch

  double cost_share() const {
    return elapsed_ns == 0 ? 0 : static_cast<double>(cost_ns) / static_cast<double>(elapsed_ns);
  }
};

/// Something beside the clock that a watch listens to.
struct Listener {
  int fd;                      ///< readable when there is something to hear
  std::function<bool()> hear;  ///< false: the watch ends
};

/// Nanoseconds of a clock, and of the monotonic one.
std::int64_t clock_ns(clockid_t clock);
std::int64_t now_ns();

/// Samples at once and then on a fixed grid, until the pace or the listener says that it is enough or nobody is left.
/// `details`: whether samples name the processes. `begin_ns` is the zero of all times.
Outcome watch(Family& family, const Pace& pace, std::int64_t begin_ns, bool details, const Listener& listener,
              const std::function<void(const Sample&)>& take);

}  // namespace cmt::watch
