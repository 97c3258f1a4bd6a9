#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "toolkit/process/smaps.h"

namespace cmt::replay {

/// Memory of a worker that can only be its allocator's, and what little its libraries had before.
struct AllocatorMemory {
  std::uint64_t resident_bytes = 0;
  std::uint64_t anonymous_bytes = 0;   ///< of them; the rest is shared memory of its own
  std::uint64_t referenced_bytes = 0;  ///< since clear_refs
  std::uint64_t lazy_free_bytes = 0;
  std::uint64_t huge_page_bytes = 0;
  std::uint64_t swapped_bytes = 0;
};

/// Those that are the allocator's from end to end: all but the written pages of libraries.
std::vector<process::Mapping> allocator_mappings(std::span<const process::Mapping> mappings, const std::string& worker);

/// Adds up anonymous mappings ([heap] among them), written pages of libraries, and shared memory that is not ours.
/// `worker` is its executable, which is left out as are its stack, operations, slots and control.
AllocatorMemory allocator_memory(std::span<const process::Mapping> mappings, const std::string& worker);

}  // namespace cmt::replay
