#include "cmtreplay/run/control_region.h"

namespace cmt::replay {
namespace {

/// Offsets in the region, each at a pair of cache lines of its own.
struct Layout {
  explicit Layout(const ControlSizes& sizes)
      : lanes(aligned(sizeof(control))),
        epochs(aligned(lanes + sizes.lanes * sizeof(lane))),
        freed(aligned(epochs + sizes.epochs * sizeof(std::uint32_t))),
        latencies(aligned(freed + sizes.ring_chunks)),
        end(latencies + (sizes.latencies ? sizes.lanes * sizeof(struct latencies) : 0)) {}

  static std::uint64_t aligned(std::uint64_t offset) { return (offset + 127) / 128 * 128; }

  std::uint64_t lanes, epochs, freed, latencies, end;
};

}  // namespace

ControlRegion::ControlRegion(const ControlSizes& sizes)
    : sizes_(sizes), bytes_(Layout(sizes).end), memory_("control", bytes_), mapping_(memory_, bytes_) {
  const Layout layout(sizes);
  control& control = get();
  control.lane_count = sizes.lanes;
  control.epoch_mask = sizes.epochs - 1;
  control.recycles = sizes.ring_chunks != 0 ? 1 : 0;
  control.lanes_offset = layout.lanes;
  control.epochs_offset = layout.epochs;
  control.free_offset = layout.freed;
  control.latencies_offset = sizes.latencies ? layout.latencies : 0;
}

}  // namespace cmt::replay
