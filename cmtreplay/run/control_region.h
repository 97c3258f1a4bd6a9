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
  std::uint32_t ring_chunks = 0;  ///< chunks that the worker gives back; 0: none
  bool latencies = false;
};

/// Shared with one worker beside operations and slots: the control, and after it the lanes, the epochs, the bytes by
/// which chunks are given back, and latencies.
class ControlRegion {
 public:
  explicit ControlRegion(const ControlSizes& sizes);

  int fd() const { return memory_.fd(); }
  std::uint64_t bytes() const { return bytes_; }
  control& get() { return *at<control>(0); }
  const control& get() const { return *at<control>(0); }

  std::span<lane> lanes() { return {at<lane>(get().lanes_offset), sizes_.lanes}; }
  std::span<const lane> lanes() const { return {at<lane>(get().lanes_offset), sizes_.lanes}; }
  std::span<std::uint32_t> epochs() { return {at<std::uint32_t>(get().epochs_offset), sizes_.epochs}; }
  std::uint8_t* freed() { return at<std::uint8_t>(get().free_offset); }
  /// One for each lane; empty where they are not wanted.
  std::span<const latencies> all_latencies() const {
    return {at<latencies>(get().latencies_offset), sizes_.latencies ? sizes_.lanes : 0};
  }

 private:
  template <class T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(mapping_.begin() + offset);
  }

  ControlSizes sizes_;
  std::uint64_t bytes_;
  SharedMemory memory_;
  MappedMemory mapping_;
};

}  // namespace cmt::replay
