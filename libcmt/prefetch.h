// Prefetching that GCC 12 does not optimise away.
#pragma once

namespace cmt {

/// Fetches the cache line of an address. GCC 12 treats a function that only calls __builtin_prefetch as one without
/// effect, and drops calls of it that are not inlined early. The empty asm is an effect that GCC keeps.
inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

/// Fetches the cache line of an address that will be changed.
inline void prefetch_to_change(const void* address) {
  __builtin_prefetch(address, 1);
  asm volatile("");
}

}  // namespace cmt
