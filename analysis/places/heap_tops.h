/// Finds the blocks at the top of glibc's heaps: if they ended, the heaps could shrink.
///
///     |live blocks|free pages..............................|block|top|     one heap
///                 |<---------- gives_back_bytes_max -------------->|
///
/// By itself, free() of glibc gives back the end of a heap only. So one small block there keeps all free pages below
/// it. (malloc_trim() gives back these pages, too.) glibc merges freed blocks of up to 120 bytes, and those in a
/// thread's cache, later than it frees them. So the heap may shrink later than the block ends.
///
/// A trace does not contain heaps. The places of its blocks show those of glibc on 64-bit machines (malloc.c, arena.c):
///
/// - The main heap has the lowest addresses, and no gap of 64 GiB. Its first block follows the cache of the
///   main thread, whose size depends on the version: first_offsets.
///
/// - A heap of another arena is in an aligned range of 64 MiB. Its first block is on the first page of the range. An
///   arena that outgrows its heap continues in another one, and only the last one can shrink. Such a heap has no data
///   of the arena before its first block. A heap that never had blocks beyond its half has not been outgrown.
///
/// - A block begins at a multiple of 16. The next one is no nearer than chunk_bytes().
///
/// If blocks break a rule, or if the trace lacks blocks that were made before it began, nothing is known.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cmt/event.h"
#include "cmt/reader.h"
#include "cmt/stacks.h"
#include "libcmt/heap/address_index.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/numbers.h"

namespace cmt::analysis {

struct MemoryUse;

/// A block at the top of a heap, and the event that made it.
struct TopBlock {
  static constexpr std::size_t functions_max = 8;

  heap::PlacedBlock block;
  std::uint64_t age_bytes = 0;
  std::uint64_t event = unknown;
  std::uint64_t time_ns = unknown;
  StackId stack = 0;
  std::vector<std::string> functions{};  ///< the innermost first, without allocation functions; empty: not known
};

template <class Visitor>
void describe(Visitor& field, const TopBlock& top) {
  field("address", output::hex(top.block.address), "in hexadecimal digits");
  field("tag", top.block.tag, "the block's number");
  field("size_bytes", top.block.size, "bytes asked for");
  field("call", name(top.block.kind), "that made it");
  field("made_event", output::nullable(top.event), "the event that made it, counted from 1; null: read from a pipe");
  field("made_time_ns", output::nullable(top.time_ns), "its time, where times were recorded");
  field("age_allocated_bytes", top.age_bytes, "bytes allocated since it was made");
  field("functions", top.functions, "that called, the innermost first, where call stacks were recorded; at most 8");
}

/// A heap that could shrink, with the blocks that prevent it.
struct HeapTop {
  static constexpr std::size_t listed_max = 4;

  std::uint64_t address = 0;
  bool is_main = false;
  std::uint64_t live_blocks = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t top_blocks = 0;
  std::uint64_t top_bytes = 0;
  std::uint64_t gives_back_bytes_max = 0;
  std::vector<TopBlock> highest{};  ///< at most listed_max, the highest first
};

template <class Visitor>
void describe(Visitor& field, const HeapTop& heap) {
  field("address", output::hex(heap.address), "where the heap begins, in hexadecimal digits");
  field("is_main", heap.is_main, "whether it is the main heap, which grows by brk");
  field("live_blocks", heap.live_blocks, "live blocks in it");
  field("live_bytes", heap.live_bytes, "bytes asked for by them");
  field("top_blocks", heap.top_blocks, "the highest of these blocks, which keep free pages below them");
  field("top_bytes", heap.top_bytes, "bytes asked for by them");
  field("gives_back_bytes_max", heap.gives_back_bytes_max,
        "upper bound of what the heap could give back if they ended: pages from the next live block on");
  field("highest", heap.highest, "the four highest of them, the highest first");
}

/// The heaps that could shrink most, at the last walk over live blocks at which their sum is at least 7/8 of its
/// maximum so far.
struct HeapTops {
  std::string unknown_because = "the trace has no block in a heap";  ///< empty: known
  std::uint64_t event = 0;
  std::uint64_t time_ns = unknown;
  std::uint64_t gives_back_bytes_max = 0;
  std::vector<HeapTop> heaps{};
};

template <class Visitor>
void describe(Visitor& field, const HeapTops& tops) {
  field("unknown_because", tops.unknown_because, "why nothing is known about heaps; empty: it is known");
  field("event", tops.event,
        "the moment: the last sample at which at least 7/8 of the most could be given back; 0: none");
  field("time_ns", output::nullable(tops.time_ns), "its time since the recording began");
  field("gives_back_bytes_max", tops.gives_back_bytes_max, "of all heaps that could give back 128 KiB or more");
  field("heaps", tops.heaps, "those of glibc that could give back most, at most 8, the largest first");
}

/// Watches where blocks are made, and finds the tops of heaps in walks over the live blocks. A walk costs some 3 ns a
/// block.
class HeapTopFinder {
 public:
  explicit HeapTopFinder(int page_shift) : page_shift_(page_shift) {}

  void begin_block(std::uint64_t address, std::uint64_t size) {
    const std::uint64_t number = address >> range_shift;
    if (range_ == nullptr || number != range_number_) {
      range_number_ = number;
      range_ = &ranges_[number];
    }
    range_->lowest = std::min(range_->lowest, address);
    range_->highest = std::max(range_->highest, heap::last_byte(address, size));
  }
  /// Whether an address is in a heap, as far as the blocks up to now show. A mapping may be the first block of all.
  bool is_in_heap(std::uint64_t address) const;
  void end_early_block() { has_early_blocks_ = true; }
  void note_resident(std::uint64_t bytes) { resident_ = bytes; }

  void walk(const heap::AddressIndex& live, const MemoryUse& now);
  HeapTops take();

  static constexpr int range_shift = 26;  ///< of the heaps of glibc's arenas: 64 MiB

 private:
  struct Heap;

  /// The bytes of an aligned range on which blocks ever were.
  struct Range {
    std::uint64_t lowest = unknown, highest = 0;
  };

  std::uint64_t lowest_address() const;
  bool begins_with_heap(std::uint64_t number) const;
  bool ends_arena(std::uint64_t number) const;
  bool visit(Heap& heap, const heap::PlacedBlock& block) const;
  void close(const Heap& heap, const MemoryUse& now, HeapTops& found) const;

  int page_shift_;
  std::unordered_map<std::uint64_t, Range> ranges_;  // by their number
  std::uint64_t range_number_ = 0;                   // of the last block
  Range* range_ = nullptr;                           // the same
  std::uint64_t resident_ = unknown;                 // at the last sample
  bool has_early_blocks_ = false;
  bool is_refuted_ = false;
  std::uint64_t most_bytes_ = 0;  // of all walks
  HeapTops most_;                 // of the last walk with nearly as many
};

/// Fills in the events that made the blocks, and their stacks. `blocks`: not empty. Reads the trace once more, or only
/// parts of a .cmt with an index. Returns the reader, which has the stacks. Throws FormatError and std::system_error.
Reader find_origins(std::vector<TopBlock*> blocks, const std::string& path, unsigned threads);

}  // namespace cmt::analysis
