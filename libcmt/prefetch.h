#pragma once

namespace cmt {

/// Fetches the cache line of an address. GCC 12 takes a function that does nothing but __builtin_prefetch for one
/// without effect, and drops the calls of it that are not inlined early. The empty asm is an effect that it respects.
inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

/// The same of a line that will be changed.
inline void prefetch_to_change(const void* address) {
  __builtin_prefetch(address, 1);
  asm volatile("");
}

}  // namespace cmt
