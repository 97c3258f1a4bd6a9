// Mutates inputs for libFuzzer: every second mutation of a .cmt is false contents with right checksums (lies.h), the
// others are libFuzzer's own.

#include <cstring>

#include "lies.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t size_max,
                                               unsigned seed) {
  const std::string lie =
      seed % 2 == 0 ? cmt::fuzz::lying({reinterpret_cast<const char*>(data), size}, seed) : std::string();
  if (lie.empty() || lie.size() > size_max) return LLVMFuzzerMutate(data, size, size_max);
  std::memcpy(data, lie.data(), lie.size());
  return lie.size();
}
