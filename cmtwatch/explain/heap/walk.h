/// Walks from chunk to chunk through a region of a heap.
#pragma once

#include <cstdint>
#include <vector>

#include "cmtwatch/explain/heap/free_lists.h"
#include "cmtwatch/explain/heap/page_book.h"

namespace cmt::watch::explain {

/// A part of a heap whose chunks follow each other. All of it lies within one mapping.
struct HeapRegion {
  Range range{};            ///< pages that the heap holds
  std::uint64_t first = 0;  ///< its first chunk
  std::uint64_t end = 0;    ///< after its last chunk
  std::uint64_t top = 0;    ///< of its arena; may lie elsewhere
  bool is_main = false;     ///< of the main arena
  bool is_piece = false;    ///< of a main arena that is not contiguous: it may end earlier than known
};

class HeapWalker {
 public:
  /// `sites`: null: no trace is known.
  HeapWalker(AddressSpace& memory, const GlibcMalloc& malloc, const FreeLists& lists, HeapFigures& figures,
             BlockSites* sites);

  /// Books all chunks of a region, and the memory before and after them as overhead. Returns where the chunks ended;
  /// of a piece, nothing after that is booked.
  std::uint64_t walk(const HeapRegion& region);

  /// Whether some chunks follow each other from an address on, in a mapping that ends at `end`.
  bool has_chain(std::uint64_t address, std::uint64_t end, std::uint64_t top);

 private:
  /// A window of memory that moves over the region, and grows where chunks follow each other closely.
  class Window {
   public:
    explicit Window(AddressSpace& memory) : memory_(memory) {}
    void move_to(Range within);
    /// Null if the bytes are outside, or not resident.
    const std::uint8_t* at(std::uint64_t address, std::uint64_t bytes) {
      const bool is_held = address >= held_.begin && address + bytes <= held_.end;
      return is_held || fill(address, bytes) ? bytes_.data() + (address - held_.begin) : nullptr;
    }

   private:
    bool fill(std::uint64_t address, std::uint64_t bytes);

    AddressSpace& memory_;
    Range within_{}, held_{};
    std::uint64_t growth_ = 0;
    std::vector<std::uint8_t> bytes_;
  };

  /// The chunks that lists have, in the order of the walk.
  class ListedChunks {
   public:
    explicit ListedChunks(const FreeLists& lists);
    void move_to(std::uint64_t address);
    /// The state of the chunk at an address, which rises from call to call; live: no list has it.
    ChunkState state_at(std::uint64_t address) {
      while (chunks_[at_].address < address) ++at_;
      return chunks_[at_].address == address ? chunks_[at_].state : ChunkState::live;
    }

   private:
    struct Chunk {
      std::uint64_t address;
      ChunkState state;
    };
    std::vector<Chunk> chunks_;  // rising; the last is none
    std::size_t at_ = 0;
  };

  std::optional<std::uint64_t> size_word(std::uint64_t chunk);
  std::uint64_t type_of(std::uint64_t chunk);
  bool find_module(std::uint64_t address);
  bool is_chain(std::uint64_t chunk, std::uint64_t end, std::uint64_t least_bytes);
  std::uint64_t find_chain(PageBook& book, std::uint64_t from, const HeapRegion& region);
  void count_lost(Range range, bool is_in_swap);
  std::uint64_t resync(PageBook& book, std::uint64_t from, const HeapRegion& region);
  bool is_top(const HeapRegion& region, std::uint64_t chunk, std::uint64_t next);
  std::uint64_t walk_chunks(const HeapRegion& region, PageBook& book);
  std::uint64_t pass_fencepost(PageBook& book, const HeapRegion& region, std::uint64_t chunk);
  std::uint64_t pass_unreadable(PageBook& book, std::uint64_t chunk, std::uint64_t next, const HeapRegion& region);

  AddressSpace& memory_;
  const GlibcMalloc& malloc_;
  HeapFigures& figures_;
  BlockSites* const sites_;
  Window window_;
  ListedChunks listed_chunks_;
  Range last_module_{};  ///< where a first word last pointed to a module's data
};

}  // namespace cmt::watch::explain
