#pragma once

#include <cstdint>
#include <vector>

namespace cmt::replay {

/// Numbers of slots, given out and taken back.
///
/// On one lane the last freed is reused first: as many as blocks are live at the peak, and warm in the cache. On
/// several one that was freed in an epoch is reused from the epoch after the next on, when every lane has come past it
/// (schedule.h): as many as blocks are live, and those that two epochs free.
class SlotPool {
 public:
  enum class Reuse { at_once, after_window };

  explicit SlotPool(Reuse reuse) : reuse_(reuse) {}

  /// Throws std::length_error where more are in use than can be named.
  std::uint32_t take();
  void give_back(std::uint32_t slot);
  void begin_epoch();

  /// Entries that the slot table needs.
  std::uint64_t size() const { return next_; }

 private:
  static constexpr std::uint32_t first = 2;  // slot_first

  Reuse reuse_;
  std::uint32_t next_ = first;
  std::vector<std::uint32_t> ready_;             ///< the next at the back
  std::vector<std::uint32_t> before_, current_;  ///< freed in the epoch before, and in this one
};

}  // namespace cmt::replay
