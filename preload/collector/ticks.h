#pragma once

#include <cstdint>

namespace cmt::collector {

/// Times of stamps: between the last two of which both are known, a straight line. Never goes back.
class Ticks {
 public:
  Ticks(std::uint64_t stamp, std::uint64_t ns) : start_ns_(ns), from_stamp_(stamp), from_ns_(ns), to_stamp_(stamp) {}

  /// Both clocks, read together, later than all stamps asked for until the next.
  void tell(std::uint64_t stamp, std::uint64_t ns) {
    if (stamp <= to_stamp_ || ns < to_ns_) return;
    if (to_ns_ != 0) {
      from_stamp_ = to_stamp_;
      from_ns_ = to_ns_;
    }
    to_stamp_ = stamp;
    to_ns_ = ns;
    slope_ = static_cast<double>(to_ns_ - from_ns_) / static_cast<double>(to_stamp_ - from_stamp_);
  }

  /// Nanoseconds since the start.
  std::uint64_t time_of(std::uint64_t stamp) {
    if (stamp <= from_stamp_) return last_;
    const auto ns =
        from_ns_ + static_cast<std::uint64_t>(static_cast<double>(stamp - from_stamp_) * slope_) - start_ns_;
    if (ns > last_) last_ = ns;
    return last_;
  }

 private:
  std::uint64_t start_ns_, from_stamp_, from_ns_, to_stamp_, to_ns_ = 0, last_ = 0;
  double slope_ = 0;
};

}  // namespace cmt::collector
