/// Lays out the memory through which cmtreplay and one worker exchange their progress (protocol.h).
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <span>

#include "cmtreplay/latency.h"
#include "cmtreplay/plan/shared_memory.h"
#include "cmtreplay/protocol.h"

namespace cmt::replay {

/// The sizes of the parts of a control region.
struct ControlSizes {
  std::uint32_t lanes = 1;
  std::uint32_t epochs = 1;       ///< a power of two
  std::uint32_t ring_chunks = 0;  ///< chunks that the worker gives back; 0: none
  bool latencies = false;
  std::uint32_t clock_points = 0;
};

/// The memory that is shared with one worker beside operations and slots. It has the control, and after it the lanes,
/// the epochs, the bytes by which chunks are given back, and latencies.
class ControlRegion {
 public:
  explicit ControlRegion(const ControlSizes& sizes) : sizes_(sizes) {
    assert(sizes.lanes != 0 && std::has_single_bit(sizes.epochs));
    control& control = get();
    control.lane_count = sizes.lanes;
    control.touched_min = UINT64_MAX;
    control.epoch_mask = sizes.epochs - 1;
    control.recycles = sizes.ring_chunks != 0 ? 1 : 0;
    control.lanes_offset = layout_.lanes;
    control.epochs_offset = layout_.epochs;
    control.free_offset = layout_.freed;
    control.clock_points_offset = layout_.clock_points;
    control.clock_point_count = sizes.clock_points;
    control.latencies_offset = sizes.latencies ? layout_.latencies : 0;
  }

  int fd() const { return memory_.fd(); }
  std::uint64_t bytes() const { return layout_.end; }
  control& get() { return *at<control>(0); }
  const control& get() const { return *at<control>(0); }

  std::span<lane> lanes() { return {at<lane>(get().lanes_offset), sizes_.lanes}; }
  std::span<const lane> lanes() const { return {at<lane>(get().lanes_offset), sizes_.lanes}; }
  std::span<std::uint32_t> epochs() { return {at<std::uint32_t>(get().epochs_offset), sizes_.epochs}; }
  std::span<clock_point> clock_points() { return {at<clock_point>(get().clock_points_offset), sizes_.clock_points}; }
  std::uint8_t* freed() { return at<std::uint8_t>(get().free_offset); }
  /// The latencies of each lane. Empty if ControlSizes::latencies is not set.
  std::span<const latencies> all_latencies() const {
    return {at<latencies>(get().latencies_offset), sizes_.latencies ? sizes_.lanes : 0};
  }

 private:
  /// The offsets of the parts. Each part begins at a pair of cache lines of its own.
  struct Layout {
    explicit Layout(const ControlSizes& sizes)
        : lanes(aligned(sizeof(control))),
          epochs(aligned(lanes + sizes.lanes * sizeof(lane))),
          freed(aligned(epochs + sizes.epochs * sizeof(std::uint32_t))),
          clock_points(aligned(freed + sizes.ring_chunks)),
          latencies(aligned(clock_points + sizes.clock_points * sizeof(clock_point))),
          end(latencies + (sizes.latencies ? sizes.lanes * sizeof(struct latencies) : 0)) {}

    static std::uint64_t aligned(std::uint64_t offset) { return (offset + 127) / 128 * 128; }

    std::uint64_t lanes, epochs, freed, clock_points, latencies, end;
  };

  template <class T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(mapping_.begin() + offset);
  }

  ControlSizes sizes_;
  Layout layout_{sizes_};
  SharedMemory memory_{"control", layout_.end};
  MappedMemory mapping_{memory_, layout_.end};
};

}  // namespace cmt::replay
