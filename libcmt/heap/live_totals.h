#pragma once

#include <cstdint>

namespace cmt::heap {

/// How much is alive. Sums wrap rather than trap: a bad trace may state any size.
struct LiveTotals {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;

  void begin(std::uint64_t size) {
    bytes += size;
    ++blocks;
  }

  void end(std::uint64_t size) {
    bytes -= size;
    --blocks;
  }
};

}  // namespace cmt::heap
