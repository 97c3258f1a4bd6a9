#pragma once

#include <cstdint>
#include <vector>

#include "cmt/event.h"

namespace cmt::collector {

/// Which tag lives at which address: open addressing, 16 bytes a slot, at most half full. 8 ns an operation where it
/// fits the cache, against 23 of tsl::robin_map with the same hash; a removal closes the gap, so chains do not grow.
class LiveTable {
 public:
  struct Slot {
    std::uint64_t address = 0;  ///< 0: empty
    Tag tag : 63 = 0;
    Tag in_transit : 1 = 0;  ///< a realloc of it has begun and not returned
  };

  LiveTable() : slots_(4096) {}

  /// The entry of an address, or nullptr. Valid until the next insert or erase.
  Slot* find(std::uint64_t address) {
    Slot& slot = slots_[seek(address)];
    return slot.address != 0 ? &slot : nullptr;
  }

  /// Fetches what find() will look at.
  void prefetch(std::uint64_t address) const { __builtin_prefetch(&slots_[home(address)], 1); }

  /// Adds an address that is not there.
  void insert(std::uint64_t address, Tag tag) {
    if (++used_ * 2 > slots_.size()) grow();
    Slot& slot = slots_[seek(address)];
    slot.address = address;
    slot.tag = tag;
    slot.in_transit = 0;
  }

  void erase(Slot* slot) {
    --used_;
    std::size_t hole = static_cast<std::size_t>(slot - slots_.data());
    for (std::size_t i = next(hole); slots_[i].address != 0; i = next(i)) {
      if (((i - home(slots_[i].address)) & mask()) < ((i - hole) & mask())) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole].address = 0;
  }

 private:
  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t next(std::size_t i) const { return (i + 1) & mask(); }

  // Blocks lie at multiples of 16; the multiplication by 2^64 / golden ratio spreads the rest over the high bits.
  std::size_t home(std::uint64_t address) const { return (address >> 4) * 0x9e3779b97f4a7c15u >> 24 & mask(); }

  std::size_t seek(std::uint64_t address) const {
    std::size_t i = home(address);
    while (slots_[i].address != 0 && slots_[i].address != address) i = next(i);
    return i;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.address != 0) slots_[seek(slot.address)] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

}  // namespace cmt::collector
