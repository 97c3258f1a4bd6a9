#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cmt::replay {

/// The time that is left of work whose parts have known weights: so much more as the rest weighs more than what is
/// done.
class TimeLeft {
 public:
  void add_work(std::uint64_t weight) { total_ += static_cast<double>(weight); }
  void begin(std::uint64_t weight) { current_ = static_cast<double>(weight); }
  void end() {
    done_ += current_;
    current_ = 0;
  }

  /// "; 35 %, 2 min left": with a share of the current part done. Empty while too little is done.
  std::string text(double share) const;

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point start_ = Clock::now();
  double total_ = 0, done_ = 0, current_ = 0;
};

/// "2 min 5 s left" of so many seconds.
std::string time_left_text(double seconds);

}  // namespace cmt::replay
