/// glibc's heap in a process: its figures, and the memory that it holds.
#pragma once

#include <cstdint>
#include <vector>

#include "cmtwatch/explain/heap/block_types.h"
#include "cmtwatch/explain/heap/free_lists.h"
#include "cmtwatch/explain/heap/glibc.h"
#include "cmtwatch/explain/heap/page_book.h"
#include "cmtwatch/explain/heap/thread_stacks.h"

namespace cmt::watch::explain {

/// Blocks so large that each has a mapping of its own.
struct MappedBlocks {
  std::uint64_t blocks = 0, bytes = 0, resident_bytes = 0;
  std::uint64_t traced = 0;  ///< blocks that the trace has
  std::vector<Range> ranges{};
};

struct GlibcHeap {
  GlibcMalloc malloc;
  FreeLists lists;
  HeapFigures figures;
  MappedBlocks mapped;
  std::vector<TypedBlocks> types{};  ///< those whose blocks keep most free memory
  std::vector<Range> heap_ranges;    ///< of all arenas; whole pages
  std::uint64_t heap_resident = 0;
  std::vector<std::string> doubts;  ///< checks that failed: why the figures may be off. Empty: they are exact

  /// The memory that all arenas have from the kernel, as malloc counts it; without mapped blocks.
  std::uint64_t system_bytes() const;
  /// The size of the largest live block, with malloc's header; 0: there is none.
  std::uint64_t largest_block_bytes() const;
  /// As mallinfo2() counts it: bins, fastbins and tops, without threads' caches.
  std::uint64_t free_bytes() const { return figures.free_bytes + figures.fast_bytes + figures.top_bytes; }
};

/// Walks the heap. `threads`: those whose caches are looked for. `sites`: null: no trace is known.
GlibcHeap read_heap(AddressSpace& memory, GlibcMalloc malloc, const std::vector<LibcThread>& threads,
                    BlockSites* sites);

}  // namespace cmt::watch::explain
