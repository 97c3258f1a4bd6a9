#pragma once

#include <cstdint>

namespace cmt::replay {

/// Bytes that may be taken before anybody has to give any up: what the kernel calls available, or what is left of the
/// control group's limit where that is less. 0 where neither is known.
std::uint64_t free_memory_bytes();

}  // namespace cmt::replay
