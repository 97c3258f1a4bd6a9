// Where the program has mapped the rings, and how much of its resident memory they are.
#pragma once

#include <cstdint>
#include <optional>

#include "preload/collector/drain/ring_memory.h"
#include "preload/collector/pages/page_map.h"

namespace cmt::collector {

/// The rings in the program's memory, by /proc/PID/maps.
struct RingsMapping {
  bool is_readable = false;   ///< the program has memory, and the kernel lists it
  std::uint64_t address = 0;  ///< 0: the rings are not there, as after an exec
};
/// Finds the mapping that begins at an offset in the file of the rings.
RingsMapping find_rings(const RingMemory& memory, std::uint64_t at = 0);

/// Counts the pages of the rings that the program has in its memory. A page of a ring is there from the first record
/// that the program writes to the page, until the collector gives it back.
class ResidentRings {
 public:
  explicit ResidentRings(RingMemory& memory) : memory_(memory) {}

  /// Returns the bytes, or 0 where the kernel does not let this process see them (PageMap::is_open). The pages are read
  /// one range after the other, while the program goes on.
  std::uint64_t count();

 private:
  std::uint64_t count_range(std::uint64_t address, std::uint64_t bytes);

  RingMemory& memory_;
  std::optional<PageMap> pages_;  // from the first call on
  std::uint64_t address_ = 0;     // of the rings in the program; 0: not found
  std::uint64_t stacks_ = 0;      // address of the StackShare, which a forked process has at a place of its own
};

}  // namespace cmt::collector
