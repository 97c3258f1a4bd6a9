/// Finds the free that raised glibc's threshold for mappings (M_MMAP_THRESHOLD).
///
/// glibc begins with a threshold of 128 KiB: a block from this size on gets a mapping of its own, which its free gives
/// back. A free of such a block raises the threshold to the block's size. From then on blocks up to that size come from
/// the heaps, which keep their memory (malloc.c, __libc_free):
///
///     malloc(200000), free    a mapping; the threshold is now 204,800
///     malloc(200000)          from a heap
///
/// A trace has neither the threshold nor the mappings. A block has a mapping if it begins 16 bytes (or its alignment)
/// into a page, and in none of the heaps of heap_tops.h. A mapping below the threshold that was found shows that the
/// threshold was set outside the trace, such as by MALLOC_MMAP_THRESHOLD_: then nothing is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "analysis/places/heap_tops.h"
#include "toolkit/output/fields.h"

namespace cmt::analysis {

/// The threshold that malloc begins with, and the most that it is raised to.
inline constexpr std::uint64_t mmap_threshold_first = 128 << 10, mmap_threshold_max = 32 << 20;

/// The chunk that glibc makes for a request: the block, its header and what an alignment needs.
std::uint64_t chunk_of_request(std::uint64_t bytes, std::uint64_t alignment);

/// The mapping for such a chunk: whole pages.
std::uint64_t mapping_of_request(std::uint64_t bytes, std::uint64_t alignment);

/// Whether an address is the first in a mapping that a block of this alignment may have. One heap block in 256 is at
/// such a place, too.
bool begins_mapping(std::uint64_t address, std::uint64_t alignment);

/// The free that raised malloc's threshold for mappings.
struct RaiseRow {
  std::string site;
  std::uint64_t bytes = 0, event = 0;
  std::optional<std::uint64_t> time_ns;
};
template <class Visitor, output::DescribedAs<RaiseRow> Row>
void describe(Visitor& field, Row& row) {
  field("site", row.site, "the call that allocated the block");
  field("bytes", row.bytes, "asked for");
  field("event", row.event, "the free, counted from 1");
  field("time_ns", row.time_ns, "of the free, since the recording began; null: no times were recorded");
}

/// "2.86 MiB of read_file (app.c:41), freed 3.10 ms after the recording began".
std::string raise_text(const RaiseRow& raise);

/// The threshold over a trace.
struct MmapThreshold {
  std::string unknown_because = {};  ///< empty: known
  bool is_set = false;
  std::uint64_t bytes = mmap_threshold_first, raises = 0;
  std::optional<RaiseRow> first = {}, last = {};
  std::uint64_t heap_blocks = 0, heap_bytes = 0, heap_bytes_peak = 0;
  TopBlock first_block = {}, last_block = {};

  /// Takes the call sites from the functions of the blocks.
  void name_sites();
};

template <class Visitor, output::DescribedAs<MmapThreshold> T>
void describe(Visitor& field, T& threshold) {
  field("unknown_because", threshold.unknown_because, "why nothing is known; empty: it is known");
  field("is_set", threshold.is_set, "the program set it, or another value that ends its raising, with mallopt");
  field("bytes", threshold.bytes, "at the end, unless the program set it");
  field("raises", threshold.raises, "frees that raised it");
  field("first", threshold.first, "the first of them; null: none");
  field("last", threshold.last, "the last, which was of the largest block; null: none");
  field("heap_blocks", threshold.heap_blocks,
        "blocks of 128 KiB or more that came from heaps since, as they were below the threshold");
  field("heap_bytes", threshold.heap_bytes, "bytes asked for by them");
  field("heap_bytes_peak", threshold.heap_bytes_peak, "the most of these that were live at once");
}

/// Follows the threshold from event to event.
class ThresholdFollower {
 public:
  /// Smaller blocks have no mappings and need not be passed on, but for alignments above their size.
  static constexpr std::uint64_t least_bytes = 64 << 10;

  void begin_block(const Event& event, const HeapTopFinder& heaps);
  void end_block(const Event& event, const heap::PlacedBlock& block, std::uint64_t number);
  void set(const Event& mallopt);

  /// `unknown_because`: of the heaps.
  MmapThreshold take(const std::string& unknown_because);

 private:
  struct Block {
    std::uint64_t chunk = 0;
    bool is_mapped = false;
  };

  MmapThreshold found_;
  std::unordered_map<std::uint64_t, Block> blocks_;  // by address: those with mappings, or with heap_bytes
  std::uint64_t heap_bytes_live_ = 0;
  std::uint64_t mapped_below_ = 0;  // blocks with mappings although they were below the threshold
  bool moves_mapping_ = false;      // the event is a realloc of a block with a mapping
};

}  // namespace cmt::analysis
