/// Books the bytes of a heap's chunks to the pages that they are on: which are resident, which hold only free memory,
/// and which blocks keep the others.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "cmtwatch/explain/heap/block_sites.h"
#include "cmtwatch/explain/memory/address_space.h"

namespace cmt::watch::explain {

/// The state of a chunk.
enum class ChunkState {
  live,
  free,      ///< in a bin
  fast,      ///< free, in a fastbin
  cached,    ///< in a thread's cache: free, and no malloc_trim gives it back
  top,       ///< the arena's last one, from which new blocks are cut
  overhead,  ///< malloc's own data, fenceposts, memory of others between a heap's parts
};

/// Blocks of one size, or of one type.
struct BlockGroup {
  std::uint64_t blocks = 0, bytes = 0;
  std::uint64_t pinned_bytes = 0;  ///< free and resident, on pages that these blocks keep

  void add(std::uint64_t chunk_bytes) {
    ++blocks;
    bytes += chunk_bytes;
  }
};

/// Groups of blocks by the size of their chunks: each size below 64 KiB, from there on powers of two.
class SizeGroups {
 public:
  static std::size_t index(std::uint64_t chunk_bytes) {
    if (chunk_bytes < exact_groups * unit) return chunk_bytes / unit;
    return exact_groups + static_cast<std::size_t>(std::bit_width(chunk_bytes / (exact_groups * unit))) - 1;
  }
  /// The least size in a group.
  static std::uint64_t least_bytes(std::size_t index);
  /// The sizes in the group of a size: "144 bytes", "65,536 to 131,071 bytes".
  static std::string text(std::uint64_t chunk_bytes);

  BlockGroup& operator[](std::size_t index) { return groups_[index]; }
  const BlockGroup& operator[](std::size_t index) const { return groups_[index]; }
  std::size_t size() const { return groups_.size(); }

 private:
  static constexpr std::size_t unit = 16, exact_groups = 4096, groups = exact_groups + 48;
  std::vector<BlockGroup> groups_ = std::vector<BlockGroup>(groups);
};

/// The sums over the chunks of heaps. Sizes of chunks include malloc's header of 8 bytes and their padding.
struct HeapFigures {
  std::uint64_t chunks = 0;
  std::uint64_t live_blocks = 0, live_bytes = 0;
  std::uint64_t largest_live_bytes = 0;           ///< of one block
  std::uint64_t free_chunks = 0, free_bytes = 0;  ///< in bins
  std::uint64_t cached_blocks = 0;                ///< in threads' caches
  std::uint64_t fast_bytes = 0, cached_bytes = 0, top_bytes = 0, overhead_bytes = 0;

  /// Bytes on resident pages. These add up to all resident bytes of the heaps.
  std::uint64_t live_resident = 0, free_resident = 0, cached_resident = 0, overhead_resident = 0;
  /// Parts of free_resident: what malloc_trim(0) would give back, and what it leaves at the ends of threads' arenas.
  std::uint64_t trim_bytes = 0, kept_tops_bytes = 0;
  /// A part of free_resident: whole pages in free chunks so large that a block of theirs could have a mapping of its
  /// own.
  std::uint64_t large_free_resident = 0;

  std::uint64_t partial_pages = 0;               ///< with free memory, and something else
  std::uint64_t partial_free_bytes = 0;          ///< the free memory on those
  std::array<std::uint64_t, 10> pages_by_use{};  ///< of those: by the tenths of the page that are in use
  std::uint64_t swapped_bytes = 0;
  std::uint64_t tops = 0;                        ///< ends of arenas that the walk has arrived at
  std::uint64_t foreign_bytes = 0;               ///< between parts of a heap: others have them from sbrk(2)
  std::uint64_t resyncs = 0, skipped_bytes = 0;  ///< places where the walk lost the chain of chunks

  SizeGroups by_size{};
  std::unordered_map<std::uint64_t, BlockGroup> by_type{};  ///< by the first word, if it points into a module's data

  std::vector<BlockGroup> by_site{};  ///< by SiteId; empty without a trace

  /// free_resident that neither malloc_trim gives nor arenas' ends hold: pages that blocks keep.
  std::uint64_t pinned_bytes() const { return free_resident - trim_bytes - kept_tops_bytes; }
};

/// Books one region of a heap, whose chunks come by address.
class PageBook {
 public:
  /// How malloc_trim(0) gives back a region's pages.
  struct Trim {
    bool has_top = false;               ///< it shrinks the region's top, as it does for the main arena alone,
    std::uint64_t top_step = 0;         ///< in steps of so many bytes; 0: of a page
    std::uint64_t huge_page_bytes = 0;  ///< of the region's reserved huge pages; 0: it has none
  };

  /// The region lies within one mapping. `sites`: null: no trace is known.
  PageBook(AddressSpace& memory, Range region, HeapFigures& figures, const Trim& trim, BlockSites* sites = nullptr);

  /// `type`: the block's first word; 0: no type is known.
  void add(Range chunk, ChunkState state, std::uint64_t type = 0) {
    // Most chunks are blocks on the same page as the one before, and nothing more is known of them.
    const bool is_on_page = chunk.begin >= page_ && chunk.end <= page_ + page_bytes;
    if (!is_on_page || state != ChunkState::live || free_run_.end != 0 || type != 0 || sites_ != nullptr)
      return book_chunk(chunk, state, type);
    const Holder holder{0, static_cast<std::uint32_t>(SizeGroups::index(chunk.bytes())), 0};
    book_live(chunk.bytes(), holder.group);
    add_holder(chunk.bytes(), holder);
  }
  void finish();

 private:
  struct Holder {
    std::uint64_t type;
    std::uint32_t group;
    SiteId site;
  };

  static constexpr std::size_t holders_max = page_bytes / chunk_alignment + 1;  // of a page

  void book_live(std::uint64_t bytes, std::size_t group) {
    ++figures_.live_blocks;
    figures_.live_bytes += bytes;
    figures_.largest_live_bytes = std::max(figures_.largest_live_bytes, bytes);
    figures_.by_size[group].add(bytes);
  }
  void add_holder(std::uint64_t bytes, const Holder& holder) {
    assert(holders_count_ < holders_.size());
    live_ += bytes;
    holders_[holders_count_++] = holder;
  }

  void book_chunk(Range chunk, ChunkState state, std::uint64_t type);
  std::uint64_t resident(std::uint64_t begin, std::uint64_t end);
  void book_other(std::uint64_t bytes, ChunkState state);
  void book_on_page(Range piece, ChunkState state, const Holder& holder);
  void book_between(Range chunk, ChunkState state);
  void book_top(Range chunk, std::uint64_t free_from);
  void end_free_run();
  void end_page();

  AddressSpace& memory_;
  const Range region_;
  HeapFigures& figures_;
  const Trim trim_;
  BlockSites* const sites_;
  Range free_run_{};  ///< neighbouring free chunks, which malloc_trim joins first
  std::uint64_t page_ = 0, live_ = 0, cached_ = 0, overhead_ = 0;  ///< bytes on the page at `page_`
  std::array<Holder, holders_max> holders_;                        ///< the live blocks on it
  std::size_t holders_count_ = 0;
};

}  // namespace cmt::watch::explain
