#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "libcmt/heap/log_linear.h"
#include "libcmt/heap/placed_block.h"

/// Where the blocks of a trace lie, over time, and what of the memory that they keep is of no use to them.
///
///     |blocks.gap.|blocks.....|...........|old........|     4 pages: 3 touched, 1 wholly free; the last is pinned
///
/// Areas: a gap of area_gap_min bytes or more is between two mappings and belongs to no heap. It is not counted, and
/// neither are its pages. `span` is the pages from the first to the last of each area: touched and wholly free.
///
/// Old: a block is old when, since it was made, more bytes were allocated than are live now. Were all lives of one
/// length, the heap would have been renewed meanwhile. (The clock of bytes is that of garbage collection; see
/// heap/clock.h.)
///
/// Pinned: a page that one block alone is on, an old one, and of no more than an eighth of the page.
namespace cmt::overhead {

inline constexpr std::uint64_t area_gap_min = 64 * 1024 * 1024;

/// Gaps below this are the allocator's rounding and headers: no block would fit.
inline constexpr std::uint64_t small_gap_max = 31;

/// What only a walk over all live blocks tells.
struct OldBlocks {
  std::uint64_t bytes = 0;
  std::uint64_t packed_bytes = 0;  ///< with the small gaps behind them: packing does not do away with rounding
  std::uint64_t pages = 0;         ///< that old blocks are on: what stays when all others have died
  std::uint64_t pinned = 0;        ///< of these: that one small old block alone is on

  /// Pages that could be given back when the young have died, if the old lay apart from them, packed.
  std::uint64_t separable(std::uint64_t page_size) const {
    const std::uint64_t packed = packed_bytes / page_size + (packed_bytes % page_size != 0);
    return pages > packed ? pages - packed : 0;
  }
};

/// One moment.
struct Sample {
  std::uint64_t event = 0;          ///< counted from 1
  std::uint64_t time_ns = unknown;  ///< since the start of the recording
  std::uint64_t live_bytes = 0;
  std::uint64_t live_blocks = 0;
  std::uint64_t pages = 0;                  ///< that live blocks are on
  std::uint64_t free_pages = 0;             ///< wholly free between them
  std::uint64_t small_gap_bytes = 0;        ///< in gaps up to small_gap_max
  std::optional<std::uint64_t> slop_bytes;  ///< usable sizes less sizes; nothing where they were not recorded
  std::optional<OldBlocks> old;             ///< of every eighth or 16th sample and the last

  std::uint64_t span_pages() const { return pages + free_pages; }
};

/// Gaps between neighbours.
struct Gaps {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

/// A block that pins a page.
struct Pin {
  heap::PlacedBlock block;
  std::uint64_t age_bytes = 0;  ///< allocated since it was made
};

/// Who pins the memory, at one moment.
struct Pins {
  std::uint64_t event = 0;
  std::uint64_t pages = 0;   ///< that live blocks are on
  std::uint64_t pinned = 0;  ///< that one small old block alone is on
  std::array<std::uint64_t, heap::SizeClasses::count> pages_by_size{};
  std::vector<Pin> oldest;  ///< at most pins_max, the oldest first
};

inline constexpr std::size_t pins_max = 10;

/// Which memory was live when.
struct AddressMap {
  /// Addresses from bin * bin_bytes on.
  struct Bin {
    std::uint64_t bin = 0;
    std::uint64_t live_bytes = 0;
    bool operator==(const Bin&) const = default;
  };
  struct Moment {
    std::uint64_t event = 0;
    std::uint64_t time_ns = unknown;
    std::vector<Bin> bins;  ///< where blocks lie, by rising address

    /// Adds bytes to the last bin, or to a new one behind it.
    void add(std::uint64_t bin, std::uint64_t bytes) {
      if (bins.empty() || bins.back().bin != bin) bins.push_back({bin, 0});
      bins.back().live_bytes += bytes;
    }
  };

  std::uint64_t bin_bytes = 0;
  std::vector<Moment> moments;
};

/// What is collected for a picture alone.
struct PlotData {
  std::vector<Sample> curve;  ///< the lows and highs of live bytes; without what a walk finds
  AddressMap map;
};

struct Summary {
  std::string name;
  std::uint64_t page_size = 0;
  std::uint64_t events = 0;
  std::uint64_t defects = 0;
  bool truncated = false;
  std::vector<Sample> samples;  ///< evenly over the trace; the last is its end
  Sample peak;                  ///< of live bytes
  std::uint64_t pages_peak = 0;
  std::array<Gaps, heap::SizeClasses::count> gaps{};  ///< at the peak of live bytes
  Pins pins;                                          ///< at the sample with the most pinned pages
  std::optional<PlotData> plot{};                     ///< where it was asked for
};

}  // namespace cmt::overhead
