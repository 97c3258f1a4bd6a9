#pragma once

#include <cstdint>

namespace cmt::heap {

/// How much is alive. Sums wrap rather than trap: a bad trace may state any size.
struct LiveTotals {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;

  void begin(std::uint64_t size) {
    bytes += size;
    ++blocks;
  }

  void end(std::uint64_t size) {
    bytes -= size;
    --blocks;
  }
};

/// A value, and what it was at the last peak of something else. A peak moves at every allocation while a heap grows, so
/// nothing is copied then: whoever changes the value saves it first, unless that was done since the last peak.
template <class T>
class AtPeak {
 public:
  const T& now() const { return now_; }

  /// The value, to be changed. `peaks` counts the peaks so far.
  T& change(std::uint64_t peaks) {
    if (saved_after_ != peaks) {
      at_peak_ = now_;
      saved_after_ = peaks;
    }
    return now_;
  }

  /// The value at the last of so many peaks.
  const T& at_peak(std::uint64_t peaks) const { return saved_after_ == peaks ? at_peak_ : now_; }

 private:
  T now_{};
  T at_peak_{};
  std::uint64_t saved_after_ = 0;
};

}  // namespace cmt::heap
