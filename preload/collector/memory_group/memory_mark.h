/// Decides when the kept events are written because memory becomes scarce (--keep-at).
#pragma once

#include <algorithm>
#include <cstdint>

#include "preload/collector/memory_group/memory_source.h"
#include "preload/text.h"

namespace cmt::collector {

/// The mark, and what was written above it. Nobody knows which writing is the last before a kill. So the events are
/// written when memory reaches the mark, and again
///
/// - after each further hundredth of the limit, with a pause as long as the writing before took;
///
/// - otherwise every 10 s, or every 100 times as long as a writing takes, while memory stays above the mark.
class MemoryMark {
 public:
  explicit MemoryMark(KeepAt at) : at_(at) {}

  /// The mark in bytes.
  std::uint64_t bytes(const MemoryFigures& memory) const {
    return at_.percent != 0 ? memory.limit / 100 * at_.percent : at_.bytes;
  }

  /// Whether to write now. `is_pressed`: the kernel reports that threads wait for memory.
  bool is_due(const MemoryFigures& memory, std::uint64_t now_ns, bool is_pressed) {
    if (is_asked_ || (memory.used < bytes(memory) && !is_pressed)) return false;
    const std::uint64_t level = memory.used + memory.swapped;
    const bool has_grown = level >= level_ + step(memory) && now_ns >= written_ns_ + took_ns_;
    const bool is_old = now_ns >= written_ns_ + std::max(idle_ns, idle_share * took_ns_);
    if (written_ns_ != 0 && !has_grown && !is_old) return false;
    level_ = level;
    return is_asked_ = true;
  }

  /// The events of the last time that it was due are written, at this time, in so long.
  void note_written(std::uint64_t now_ns, std::uint64_t took_ns) {
    is_asked_ = false;
    written_ns_ = now_ns;
    took_ns_ = took_ns;
  }

  /// How long to wait for the next look, so that a program that takes 2 GB/s is seen near the mark.
  int wait_ms(const MemoryFigures& memory) const {
    constexpr std::uint64_t bytes_per_ms = 2'000'000, least_ms = 10, most_ms = 100;
    const std::uint64_t mark = bytes(memory), left = mark - std::min(mark, memory.used);
    return static_cast<int>(std::clamp(left / bytes_per_ms, least_ms, most_ms));
  }

 private:
  static constexpr std::uint64_t idle_ns = 10'000'000'000, idle_share = 100, step_least = 1 << 20;

  std::uint64_t step(const MemoryFigures& memory) const {
    return std::max((memory.has_limit() ? memory.limit : at_.bytes) / 100, step_least);
  }

  const KeepAt at_;
  bool is_asked_ = false;
  std::uint64_t level_ = 0, written_ns_ = 0, took_ns_ = 0;
};

}  // namespace cmt::collector
