#include "cmtreplay/plan/slot_pool.h"

#include <stdexcept>

#include "cmtreplay/protocol.h"

namespace cmt::replay {

std::uint32_t SlotPool::take() {
  static_assert(first == slot_first);
  if (ready_.empty()) {
    if (next_ == std::uint32_t{1} << slot_bits) throw std::length_error("more than 268,435,454 blocks live at once");
    return next_++;
  }
  const std::uint32_t slot = ready_.back();
  ready_.pop_back();
  return slot;
}

void SlotPool::give_back(std::uint32_t slot) { (reuse_ == Reuse::at_once ? ready_ : current_).push_back(slot); }

void SlotPool::begin_epoch() {
  ready_.insert(ready_.end(), before_.begin(), before_.end());
  before_.swap(current_);
  current_.clear();
}

}  // namespace cmt::replay
