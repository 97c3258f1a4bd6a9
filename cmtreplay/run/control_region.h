#pragma once

#include <cstdint>
#include <span>

#include "cmtreplay/latency.h"
#include "cmtreplay/plan/shared_memory.h"
#include "cmtreplay/protocol.h"

namespace cmt::replay {

/// How much a region of control has to hold.
struct ControlSizes {
  std::uint32_t lanes = 1;
  std::uint32_t epochs = 1;       ///< a power of two
  std::uint32_t ring_chunks = 0;  ///< that are given back; 0: none are
  bool latencies = false;
};

/// What the parent and one worker share beside operations and slots: the control, and behind it the lanes, the epochs,
/// the bytes in which chunks are given back, and latencies.
class ControlRegion {
 public:
  explicit ControlRegion(const ControlSizes& sizes);
  ~ControlRegion();
  ControlRegion(const ControlRegion&) = delete;
  ControlRegion& operator=(const ControlRegion&) = delete;

  int fd() const { return memory_.fd(); }
  std::uint64_t bytes() const { return bytes_; }
  control& get() { return *reinterpret_cast<control*>(begin_); }
  const control& get() const { return *reinterpret_cast<const control*>(begin_); }

  std::span<lane> lanes() { return {reinterpret_cast<lane*>(begin_ + get().lanes_offset), sizes_.lanes}; }
  std::span<const lane> lanes() const {
    return {reinterpret_cast<const lane*>(begin_ + get().lanes_offset), sizes_.lanes};
  }
  std::span<std::uint32_t> epochs() {
    return {reinterpret_cast<std::uint32_t*>(begin_ + get().epochs_offset), sizes_.epochs};
  }
  std::uint8_t* freed() { return reinterpret_cast<std::uint8_t*>(begin_ + get().free_offset); }
  /// Of each lane; none where they are not asked for.
  std::span<const latencies> all_latencies() const {
    return {reinterpret_cast<const latencies*>(begin_ + get().latencies_offset), sizes_.latencies ? sizes_.lanes : 0};
  }

 private:
  struct Layout;

  ControlSizes sizes_;
  std::uint64_t bytes_;
  SharedMemory memory_;
  char* begin_;
};

}  // namespace cmt::replay
