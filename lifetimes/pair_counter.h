#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string>

#include "cmt/event.h"
#include "lifetimes/live_blocks.h"

namespace cmt::lifetimes {

/// Counts how often each pair of lifetime and size occurs. The output is that of the original's lifetimes-summary.sh,
/// byte for byte. Memory: the live blocks, and some 40 bytes a pair.
class PairCounter {
 public:
  /// Borrows `complaints`.
  PairCounter(heap::Clock::Unit clock, command::Complaints& complaints) : live_(clock, complaints) {}

  void count_event(const Event& event);

  /// Lines "  COUNT LIFETIME SIZE", sorted by lifetime as a number, then by size as text, as the original's sort does.
  std::string to_text() const;

 private:
  struct Block {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;
  };
  struct Pair {
    std::uint64_t lifetime;
    std::uint64_t size;
    bool operator==(const Pair&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Pair& pair) const {
      const std::uint64_t mixed = (pair.lifetime + pair.size * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
      return mixed ^ mixed >> 32;
    }
  };

  LiveBlocks<Block> live_;
  tsl::robin_map<Pair, std::uint64_t, Hash> counts_;
};

}  // namespace cmt::lifetimes
