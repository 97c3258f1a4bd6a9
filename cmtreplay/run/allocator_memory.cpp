// The name of a mapping in /proc/PID/smaps tells whose memory it is:
//
//   none, [heap], [anon:...]         the allocator's (and the .bss of libraries, which stays as it was)
//   [stack], [vdso], [vvar] ...      the worker's
//   /memfd:cmtreplay-...             the replay's
//   the worker's executable          the worker's
//   other files, mapped private      pages that were written are anonymous copies: the allocator's .data
//   /dev/shm, /memfd:, /dev/zero,    shared memory that the allocator hands out
//   /SYSV..., mapped shared
//   other files, mapped shared       the page cache's
#include "cmtreplay/run/allocator_memory.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cmtreplay/plan/shared_memory.h"

namespace cmt::replay {
namespace {

bool is_shared_memory(std::string_view name) {
  constexpr std::array<std::string_view, 4> prefixes{"/memfd:", "/dev/shm/", "/dev/zero", "/SYSV"};
  return std::any_of(prefixes.begin(), prefixes.end(), [name](auto prefix) { return name.starts_with(prefix); });
}

bool is_anonymous(const process::Mapping& mapping) {
  return mapping.name.empty() || mapping.name == "[heap]" || mapping.name.starts_with("[anon");
}

void add_mapping(AllocatorMemory& memory, const process::Mapping& mapping, std::uint64_t resident_bytes) {
  memory.resident_bytes += resident_bytes;
  memory.anonymous_bytes += std::min(mapping.anonymous_bytes, resident_bytes);
  memory.referenced_bytes += std::min(mapping.referenced_bytes, resident_bytes);
  memory.lazy_free_bytes += mapping.lazy_free_bytes;
  memory.huge_page_bytes += mapping.huge_page_bytes;
  memory.swapped_bytes += mapping.swapped_bytes;
}

/// The replay's or the kernel's.
bool is_other(const process::Mapping& mapping, const std::string& worker) {
  const bool is_replays = mapping.name.starts_with(shared_memory_prefix) || mapping.name == worker;
  return is_replays || (mapping.name.starts_with("[") && !is_anonymous(mapping));
}

bool is_wholly_allocators(const process::Mapping& mapping) {
  return is_anonymous(mapping) || (mapping.shared() && is_shared_memory(mapping.name));
}

}  // namespace

std::vector<process::Mapping> allocator_mappings(std::span<const process::Mapping> mappings,
                                                 const std::string& worker) {
  std::vector<process::Mapping> result;
  for (const process::Mapping& mapping : mappings) {
    if (!is_other(mapping, worker) && is_wholly_allocators(mapping)) result.push_back(mapping);
  }
  return result;
}

AllocatorMemory allocator_memory(std::span<const process::Mapping> mappings, const std::string& worker) {
  AllocatorMemory memory;
  for (const process::Mapping& mapping : mappings) {
    if (is_other(mapping, worker)) continue;
    if (is_wholly_allocators(mapping))
      add_mapping(memory, mapping, mapping.resident_bytes);
    else if (!mapping.shared())
      add_mapping(memory, mapping, mapping.anonymous_bytes);
  }
  return memory;
}

}  // namespace cmt::replay
