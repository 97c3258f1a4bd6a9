#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string>

#include "cmt/reader.h"
#include "libcmt/block_table.h"
#include "libcmt/heap/clock.h"
#include "toolkit/command/complaints.h"

namespace cmt::lifetimes {

/// Counts how often every pair of lifetime and size occurs: the original's lifetimes-summary.sh, byte for byte.
/// Memory: the live blocks', and 40 bytes or so a pair.
class PairCounter {
 public:
  /// Borrows `complaints`.
  PairCounter(heap::Clock::Unit clock, command::Complaints& complaints) : clock_(clock), complaints_(complaints) {}

  void add(const Event& event);

  /// Lines "  COUNT LIFETIME SIZE", by lifetime as a number, then by size as a text: so the original's sort has it.
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

  void end(Tag tag);
  void complain(Tag tag, const char* what);

  heap::Clock clock_;
  command::Complaints& complaints_;
  BlockTable<Block> live_;
  tsl::robin_map<Pair, std::uint64_t, Hash> counts_;
  Tag first_tag_ = 0;
};

}  // namespace cmt::lifetimes
