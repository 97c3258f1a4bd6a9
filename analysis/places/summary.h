/// overhead's summary of a trace: the pages of its blocks over time, and the memory on these pages that is not used.
///
///     |blocks.gap.|blocks.....|...........|old........|     4 pages: 3 that blocks are on; the last is pinned
///
/// Held: a page that had a block and has none now; the third may be one. The allocator may have given the page back,
/// which a trace does not contain. So `held_pages_max` is an upper bound (held_pages.h).
///
/// Area: neighbours with a gap of area_gap_min bytes or more between them are in two mappings. Such a gap is no part of
/// a heap, and is not counted.
///
/// Old: a block is old if more bytes were allocated since it was made than are live now. If all blocks lived equally
/// long, the whole heap would have been replaced in that time. (The clock of bytes is that of garbage collection; see
/// libcmt/heap/clock.h.)
///
/// Pinned: a page is pinned if a single block is on it, which is old and at most an eighth of the page.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/held_pages/page_use.h"
#include "analysis/places/heap_tops.h"
#include "analysis/places/mmap_threshold.h"
#include "cmt/event.h"
#include "libcmt/heap/address_index.h"
#include "libcmt/heap/clock.h"
#include "libcmt/heap/log_linear.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/numbers.h"
#include "toolkit/trace/pools.h"

namespace cmt::analysis {

using heap::SizeClasses;

inline constexpr std::uint64_t area_gap_min = 64 * 1024 * 1024;

using analysis::small_gap_max;

/// Figures of the old blocks, from a walk over all live blocks.
struct OldBlocks {
  std::uint64_t bytes = 0;
  std::uint64_t packed_bytes = 0;
  std::uint64_t pages = 0;
  std::uint64_t pinned_pages = 0;
  std::uint64_t separable_pages = 0;
};

/// The memory in use after one event.
struct MemoryUse {
  std::uint64_t event = 0;
  std::uint64_t time_ns = unknown;
  std::uint64_t live_bytes = 0;
  std::uint64_t live_blocks = 0;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t pages = 0;
  std::uint64_t held_pages_max = 0;
  std::uint64_t resident_bytes = unknown;
  std::uint64_t resident_event = unknown;
  std::uint64_t resident_time_ns = unknown;
  std::uint64_t resident_live_bytes = unknown;
  std::uint64_t small_gap_bytes = 0;
  std::optional<std::uint64_t> slop_bytes;
  std::optional<std::uint64_t> untouched_pages, unknown_pages;

  /// Blocks are old if they were made before so many bytes had been allocated.
  std::uint64_t old_before() const { return allocated_bytes - std::min(live_bytes, allocated_bytes); }
  /// Pages of live blocks that are known to be in memory.
  std::optional<std::uint64_t> touched_pages() const {
    if (!untouched_pages) return std::nullopt;
    return pages - std::min(pages, *untouched_pages + unknown_pages.value_or(0));
  }
};

template <class Visitor>
void describe(Visitor& field, const MemoryUse& use) {
  field("event", use.event, "the last event, counted from 1");
  field("time_ns", output::nullable(use.time_ns), "since the recording began");
  field("live_bytes", use.live_bytes, "live bytes");
  field("live_blocks", use.live_blocks, "live blocks");
  field("allocated_bytes", use.allocated_bytes, "bytes asked for so far, in all");
  field("pages", use.pages, "pages that live blocks are on");
  field("held_pages_max", use.held_pages_max,
        "upper bound of the pages without a live block that the allocator still holds. If the trace has samples of "
        "memory: also at most the pages resident at the last one and those that lost their last block since");
  field("resident_bytes", output::nullable(use.resident_bytes),
        "of the process, at the last sample of its memory, where the trace has samples");
  field("resident_event", output::nullable(use.resident_event),
        "the event of that sample, which may be an earlier one");
  field("resident_time_ns", output::nullable(use.resident_time_ns), "its time");
  field("resident_live_bytes", output::nullable(use.resident_live_bytes), "live bytes at that sample");
  field("small_gap_bytes", use.small_gap_bytes, "bytes in gaps of 31 bytes or less");
  field("slop_bytes", use.slop_bytes, "usable sizes less sizes, where usable sizes were recorded");
  field("untouched_pages", use.untouched_pages,
        "of pages: those wholly in a block, that were not touched so far, where touched pages were recorded");
  field("touched_pages_estimate", use.touched_pages(),
        "pages less these and unknown_pages: what of the blocks is known to be in memory. Of smaller blocks all pages "
        "count as touched");
  field(
      "unknown_pages", use.unknown_pages,
      "of pages: those wholly in a block about whose pages the tracer did not ask, or that were all in memory before");
}

struct Sample : MemoryUse {
  std::optional<OldBlocks> old;  ///< empty but for every eighth or 16th sample and the last
};

template <class Visitor>
void describe(Visitor& field, const Sample& sample) {
  describe(field, static_cast<const MemoryUse&>(sample));
  const auto of_old = [&](std::uint64_t OldBlocks::*member) {
    return sample.old ? std::optional((*sample.old).*member) : std::nullopt;
  };
  field("old_bytes", of_old(&OldBlocks::bytes),
        "live bytes of old blocks; this and the next four of some samples only");
  field("old_packed_bytes", of_old(&OldBlocks::packed_bytes),
        "with the gaps of 31 bytes or less after them, which packing does not remove");
  field("old_pages", of_old(&OldBlocks::pages), "pages that old blocks are on: they stay when all others have ended");
  field("pinned_pages", of_old(&OldBlocks::pinned_pages), "of these: pages that only one small old block is on");
  field("separable_pages", of_old(&OldBlocks::separable_pages),
        "old_pages less the pages that the old blocks would need if they were packed");
}

/// Gaps between neighbours.
struct Gaps {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Gaps&) const = default;
};

template <class Visitor>
void describe(Visitor& field, const Gaps& gaps) {
  field("gaps", gaps.count, "gaps");
  field("bytes", gaps.bytes, "their bytes");
}

/// A block that pins a page.
struct Pin {
  heap::PlacedBlock block;
  std::uint64_t age_bytes = 0;
};

template <class Visitor>
void describe(Visitor& field, const Pin& pin) {
  field("address", output::hex(pin.block.address), "in hexadecimal digits");
  field("tag", pin.block.tag, "the block's number");
  field("size_bytes", pin.block.size, "bytes asked for");
  field("age_allocated_bytes", pin.age_bytes, "bytes allocated since it was made");
}

inline constexpr std::size_t pins_max = 10;

/// The blocks that pin pages at one moment.
struct Pins {
  std::uint64_t event = 0;
  std::uint64_t pages = 0;
  std::uint64_t pinned_pages = 0;
  std::array<std::uint64_t, SizeClasses::count> pages_by_size{};
  std::vector<Pin> oldest;  ///< at most pins_max, the oldest first
};

template <class Visitor>
void describe(Visitor& field, const Pins& pins) {
  field("event", pins.event, "the sample's event");
  field("pinned_pages", pins.pinned_pages, "pages that only one small old block is on");
  field("pages", pins.pages, "pages that live blocks are on");
  field("pages_by_size", output::by_class<SizeClasses>(pins.pages_by_size),
        "pinned pages by the size of the block: [size_bytes_min, pages]");
  field("oldest", pins.oldest, "the ten oldest of these blocks, the oldest first");
}

/// One class a doubling: 0, 1, 2-3, 4-7, …
using Doublings = heap::LogLinear<0>;

/// The kinds of events as classes.
struct KindNames {
  static constexpr std::size_t count = kind_limit;
  static std::string_view low(std::size_t index) { return name(static_cast<Kind>(index)); }
};

/// The pages that the blocks of one group hold. The blocks on a page share it evenly.
struct Holding {
  std::uint64_t blocks = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t page_bytes = 0;
  std::uint64_t unused_bytes = 0;
  std::uint64_t sole_bytes = 0;
  bool operator==(const Holding&) const = default;
};

template <class Visitor>
void describe(Visitor& field, const Holding& holding) {
  field("blocks", holding.blocks, "live blocks of the group");
  field("live_bytes", holding.live_bytes, "bytes asked for by them");
  field("page_bytes", holding.page_bytes, "their share of the pages that they are on");
  field("unused_bytes", holding.unused_bytes, "of that share: bytes that no block asked for");
  field("sole_bytes", holding.sole_bytes,
        "pages that no block of another group is on: free if the group were not there");
}

/// The live blocks that hold the pages at one moment, grouped in three ways. A further way needs another member here
/// and in live_walks.cpp. page_holders.h groups them by call stack.
struct Holders {
  std::uint64_t event = 0;
  std::uint64_t pages = 0;
  std::uint64_t live_bytes = 0;
  std::array<Holding, heap::SizeClasses::count> by_size{};
  std::array<Holding, Doublings::count> by_age{};
  std::array<Holding, kind_limit> by_kind{};
};

template <class Visitor>
void describe(Visitor& field, const Holders& holders) {
  field("event", holders.event, "the sample's event");
  field("pages", holders.pages, "pages that live blocks are on");
  field("live_bytes", holders.live_bytes, "live bytes");
  field("by_size", output::by_class<heap::SizeClasses>(holders.by_size),
        "by size: [size_bytes_min, blocks, live_bytes, page_bytes, unused_bytes, sole_bytes]; a page is shared evenly "
        "among its blocks, and sole_bytes are pages that no block of another group is on");
  field("by_age", output::by_class<Doublings>(holders.by_age),
        "by the bytes allocated since the block was made: [age_bytes_min, blocks, ...]");
  field("by_kind", output::by_class<KindNames>(holders.by_kind),
        "by the call that made the block: [kind, blocks, ...]");
}

/// The addresses that were live, by moment.
struct AddressMap {
  /// The addresses from bin * bin_bytes on.
  struct Bin {
    std::uint64_t bin = 0;
    std::uint64_t live_bytes = 0;
    bool operator==(const Bin&) const = default;
  };
  struct Moment {
    std::uint64_t event = 0;
    std::uint64_t time_ns = unknown;
    std::uint64_t allocated_bytes = 0;
    std::vector<Bin> bins;  ///< bins with live bytes, by rising address

    /// Adds bytes to the last bin, or to a new one after it.
    void add_bytes(std::uint64_t bin, std::uint64_t bytes) {
      if (bins.empty() || bins.back().bin != bin) bins.push_back({bin, 0});
      bins.back().live_bytes += bytes;
    }
  };

  std::uint64_t bin_bytes = 0;
  std::vector<Moment> moments;
};

template <class Visitor>
void describe(Visitor& field, const AddressMap::Bin& bin) {
  field("bin", bin.bin, "address / bin_bytes");
  field("live_bytes", bin.live_bytes, "live bytes in the bin");
}
template <class Visitor>
void describe(Visitor& field, const AddressMap::Moment& moment) {
  field("event", moment.event, "the last event, counted from 1");
  field("time_ns", output::nullable(moment.time_ns), "since the recording began");
  field("bins", output::as_tuples(moment.bins), "bins that blocks lie in: [address / bin_bytes, live_bytes]");
}
template <class Visitor>
void describe(Visitor& field, const AddressMap& map) {
  field("bin_bytes", map.bin_bytes, "addresses of a bin");
  field("moments", map.moments, "moments, evenly over the trace");
}

struct Summary {
  std::string name;
  std::uint64_t page_size = 0;
  std::uint64_t events = 0;
  std::uint64_t defects = 0;
  bool truncated = false;
  std::uint64_t unknown_ends = 0;
  std::uint64_t pages_peak = 0;
  std::vector<Sample> samples;
  MemoryUse peak;
  std::array<Gaps, SizeClasses::count> gaps{};
  Pins pins;
  Holders holders;
  HeapTops heap_tops;
  MmapThreshold mmap_threshold;
  std::optional<std::vector<trace::PoolCount>> pools_not_counted{};
  std::optional<heap::Clock::Unit> axis;        ///< of the picture; empty: time if it was recorded, else events
  std::optional<std::vector<MemoryUse>> curve;  ///< only for a picture, as is the map
  std::optional<AddressMap> address_map;

  /// The blocks whose functions are to be filled in.
  std::vector<TopBlock*> blocks_to_name() {
    std::vector<TopBlock*> blocks;
    for (HeapTop& heap : heap_tops.heaps) {
      for (TopBlock& top : heap.highest) blocks.push_back(&top);
    }
    if (mmap_threshold.first) blocks.insert(blocks.end(), {&mmap_threshold.first_block, &mmap_threshold.last_block});
    return blocks;
  }
};

template <class Visitor>
void describe(Visitor& field, const Summary& summary) {
  field("schema", "cmt.overhead/1", "the name and version of this form");
  field("name", summary.name, "the file's name without its folder");
  field("page_size_bytes", summary.page_size, "bytes of a page");
  field("events", summary.events, "events read");
  field("defects", summary.defects, "defects found in the trace");
  field("truncated", summary.truncated, "whether the trace breaks off");
  field("unknown_ends", summary.unknown_ends,
        "frees of unknown blocks: made before the trace began, or not recorded. They are in none of the figures below");
  field("pages_peak", summary.pages_peak, "the most pages that live blocks were on");
  field("samples", summary.samples, "moments, evenly over the trace; the last is its end");
  field("peak", summary.peak, "the moment of most live bytes");
  field("gaps_at_peak", output::by_class<SizeClasses>(summary.gaps),
        "gaps between neighbours at that moment: [gap_bytes_min, gaps, bytes]");
  field("pins", summary.pins, "the sample with the most pinned pages");
  field("holders", summary.holders, "which blocks hold the pages, at the sample with the most unused bytes on pages");
  field("heap_tops", summary.heap_tops, "blocks at the top of glibc's heaps, without which the heaps could shrink");
  field("mmap_threshold", summary.mmap_threshold, "glibc's threshold for mappings, and the frees that raised it");
  field("pools_not_counted", output::omit_if_empty(summary.pools_not_counted),
        "the pools that have events, which are in none of these figures (overhead --pool)");
  field("curve", output::omit_if_empty(summary.curve),
        "with --plot: of at most 512 intervals the moments of least and of most live bytes");
  field("address_map", output::omit_if_empty(summary.address_map), "with --plot: which addresses were live when");
}

}  // namespace cmt::analysis
