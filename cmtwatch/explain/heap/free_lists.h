/// Chunks that are free but marked as in use: in fastbins and in threads' caches.
#pragma once

#include <cstdint>
#include <vector>

#include "cmtwatch/explain/heap/glibc.h"
#include "cmtwatch/explain/heap/thread_stacks.h"

namespace cmt::watch::explain {

/// Chunks by their addresses, which rise.
struct FreeLists {
  std::vector<std::uint64_t> fast{};    ///< in fastbins
  std::vector<std::uint64_t> cached{};  ///< in threads' caches
  std::vector<std::uint64_t> caches{};  ///< those that hold the caches themselves
  bool has_caches = true;               ///< false: glibc has them, and no thread's was found
  /// The blocks in caches by the caches' own counts. 0 from glibc 2.42 on.
  std::uint64_t counted_blocks = 0, counted_bytes = 0;
  std::uint64_t broken = 0;  ///< lists that a change while they were read, or damage, has cut
};

FreeLists read_free_lists(AddressSpace& memory, const GlibcMalloc& malloc, const std::vector<LibcThread>& threads);

}  // namespace cmt::watch::explain
