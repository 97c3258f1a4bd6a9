// Live bytes, live blocks and peaks, counted in one way by library and tools.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "cmt/event.h"
#include "libcmt/block_table.h"

namespace cmt::heap {

/// Live bytes and live blocks, of a whole trace or of a part. Sums are modulo 2^64, because a damaged trace may state
/// any size.
struct LiveTotals {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;

  void add_block(std::uint64_t size) {
    bytes += size;
    ++blocks;
  }

  void remove_block(std::uint64_t size) {
    bytes -= size;
    --blocks;
  }

  LiveTotals& operator+=(const LiveTotals& more) {
    bytes += more.bytes;
    blocks += more.blocks;
    return *this;
  }
  bool operator==(const LiveTotals&) const = default;
};

/// Follows the events of a trace and keeps its live totals, with the peak of live bytes. Memory: the size of each live
/// block. A tool that keeps a table of live blocks anyway uses LiveTotals alone.
class LiveAccount {
 public:
  void count(const Event& event) {
    if (event.ends_block()) {
      const SizedBlock* const ended = sizes_.erase(event.old_tag);  // null: made before the trace began
      assert(ended == nullptr || live_.blocks != 0);
      if (ended != nullptr) live_.remove_block(ended->bytes);
    }
    if (!event.makes_block() || !sizes_.insert({event.tag, event.bytes()})) return;
    live_.add_block(event.bytes());
    bytes_peak_ = std::max(bytes_peak_, live_.bytes);
  }

  const LiveTotals& live() const { return live_; }
  std::uint64_t bytes_peak() const { return bytes_peak_; }

 private:
  struct SizedBlock {
    Tag tag = 0;
    std::uint64_t bytes = 0;
  };

  BlockTable<SizedBlock> sizes_;
  LiveTotals live_;
  std::uint64_t bytes_peak_ = 0;
};

/// A value, and its value at the last peak of another figure. A peak moves with every allocation while a heap grows. So
/// nothing is copied at a peak: the next change of the value saves the old value first.
template <class T>
class AtPeak {
 public:
  const T& now() const { return now_; }

  /// Returns the value for a change. `peaks` is the number of peaks so far.
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
