#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "toolkit/process/smaps.h"

namespace cmt::replay {

/// Memory of a worker that its allocator uses, and the little that its libraries used before.
struct AllocatorMemory {
  std::uint64_t resident_bytes = 0;
  std::uint64_t anonymous_bytes = 0;   ///< of the resident bytes; the others are shared memory of the allocator's
  std::uint64_t referenced_bytes = 0;  ///< since clear_refs
  std::uint64_t lazy_free_bytes = 0;
  std::uint64_t huge_page_bytes = 0;
  std::uint64_t swapped_bytes = 0;
};

/// The mappings that are wholly the allocator's: all but the written pages of libraries.
std::vector<process::Mapping> allocator_mappings(std::span<const process::Mapping> mappings, const std::string& worker);

/// Adds up anonymous mappings ([heap] among them), written pages of libraries, and shared memory that is not the
/// replay's. `worker` is the worker's executable, which is left out, as are its stack, operations, slots and control.
AllocatorMemory allocator_memory(std::span<const process::Mapping> mappings, const std::string& worker);

}  // namespace cmt::replay
