// Whose is a mapping? Its name tells:
//
//   none, [heap], [anon:...]         the allocator's, all of it (libraries' .bss is there too, and stays as it was)
//   [stack], [vdso], [vvar] ...      the worker's
//   /memfd:cmtreplay-...             the replay's own
//   the worker's executable          the worker's
//   other files, mapped private      pages that were written are copies, hence anonymous: an allocator's .data
//   /dev/shm, /memfd:, /dev/zero,    an allocator that hands out shared memory
//   /SYSV..., mapped shared
//   other files, mapped shared       nobody's: the page cache
#include "cmtreplay/run/allocator_memory.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cmtreplay/plan/shared_memory.h"

namespace cmt::replay {
namespace {

bool is_memory(std::string_view name) {
  constexpr std::array<std::string_view, 4> prefixes{"/memfd:", "/dev/shm/", "/dev/zero", "/SYSV"};
  return std::any_of(prefixes.begin(), prefixes.end(), [name](auto prefix) { return name.starts_with(prefix); });
}

bool is_anonymous(const process::Mapping& mapping) {
  return mapping.name.empty() || mapping.name == "[heap]" || mapping.name.starts_with("[anon");
}

void add(AllocatorMemory& memory, const process::Mapping& mapping, std::uint64_t resident_bytes) {
  memory.resident_bytes += resident_bytes;
  memory.anonymous_bytes += std::min(mapping.anonymous_bytes, resident_bytes);
  memory.referenced_bytes += std::min(mapping.referenced_bytes, resident_bytes);
  memory.lazy_free_bytes += mapping.lazy_free_bytes;
  memory.huge_page_bytes += mapping.huge_page_bytes;
  memory.swapped_bytes += mapping.swapped_bytes;
}

/// The replay's own, or the kernel's.
bool is_strange(const process::Mapping& mapping, const std::string& worker) {
  const bool ours = mapping.name.starts_with(shared_memory_prefix) || mapping.name == worker;
  return ours || (mapping.name.starts_with("[") && !is_anonymous(mapping));
}

bool is_whole(const process::Mapping& mapping) {
  return is_anonymous(mapping) || (mapping.shared() && is_memory(mapping.name));
}

}  // namespace

std::vector<process::Mapping> allocator_mappings(std::span<const process::Mapping> mappings,
                                                 const std::string& worker) {
  std::vector<process::Mapping> result;
  for (const process::Mapping& mapping : mappings) {
    if (!is_strange(mapping, worker) && is_whole(mapping)) result.push_back(mapping);
  }
  return result;
}

AllocatorMemory allocator_memory(std::span<const process::Mapping> mappings, const std::string& worker) {
  AllocatorMemory memory;
  for (const process::Mapping& mapping : mappings) {
    if (is_strange(mapping, worker)) continue;
    if (is_whole(mapping))
      add(memory, mapping, mapping.resident_bytes);
    else if (!mapping.shared())
      add(memory, mapping, mapping.anonymous_bytes);
  }
  return memory;
}

}  // namespace cmt::replay
