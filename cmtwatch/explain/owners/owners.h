/// Finds who owns anonymous memory that glibc's malloc does not hold. The hard thing: no list says so. Each owner is
/// recognised by what it writes at the beginning of its pools, chunks or segments.
///
/// | owner | unit | mark |
/// |---|---|---|
/// | Python's small objects | pools of 16 KiB (4 KiB before 3.10) | the pool's header agrees with itself |
/// | PHP's Zend allocator | chunks of 2 MiB | chunks in a ring, each with the address of one heap |
/// | mimalloc 2 | segments of 32 MiB | a chain of spans that covers the whole segment |
/// | a name | mappings | "[anon:NAME]", which the program gave to the kernel |
/// | V8, Ruby, the JVM, Go | pages, or ranges of addresses | simple ones: the answer is only likely |
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/explain/memory/address_space.h"

namespace cmt::watch::explain {

/// The memory of one owner.
struct OwnedMemory {
  std::string owner{};                        ///< "Python's small objects"
  bool is_likely = false;                     ///< a guess from simple marks
  std::vector<Range> ranges{};                ///< whole pages, by address
  std::optional<std::uint64_t> live_bytes{};  ///< as the owner rounds them; unknown if the owner's layout is
  std::optional<std::uint64_t> pieces{};      ///< pools, chunks, segments or pages
  std::string remark{};                       ///< a sentence without capital and full stop, or empty
};

/// Finds the owners of ranges of private, anonymous, writable memory. Each is of whole pages, and within one mapping.
/// The answers' ranges are within them, and do not overlap. Reads only resident pages. The contents are hostile: a
/// process that runs may change them at any time, and any word may be wrong.
std::vector<OwnedMemory> find_owners(AddressSpace& memory, const std::vector<Range>& unknown);

}  // namespace cmt::watch::explain
