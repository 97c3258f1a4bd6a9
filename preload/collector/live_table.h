#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <unordered_map>
#include <vector>

#include "cmt/event.h"
#include "format/live_blocks.h"

namespace cmt::collector {

/// Memory for a large table that is looked at here and there: in huge pages, where the kernel has them.
template <class T>
struct HugePages {
  using value_type = T;
  static constexpr std::size_t page = std::size_t{2} << 20;

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < 2 * page) return static_cast<T*>(::operator new(bytes));
    void* memory = ::operator new (bytes, std::align_val_t{page});
    ::madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    if (count * sizeof(T) < 2 * page) return ::operator delete(memory);
    ::operator delete (memory, std::align_val_t{page});
  }
  bool operator==(const HugePages&) const = default;
};

/// The live blocks by address: open addressing, 16 bytes a slot, at most half full; a removal closes the gap, so chains
/// do not grow. All that is known of a block is in its slot, so an event costs one look, at memory that was fetched
/// ahead: 48 bits of address, 47 of tag (at ten million allocations a second those last five months), 32 of size; the
/// few larger sizes are kept beside.
///
/// Neighbours in memory are neighbours in the table: what is allocated and freed together is fetched together.
class LiveTable {
 public:
  class Slot {
   public:
    bool is_free() const { return head_ == 0; }
    std::uint64_t address() const { return head_ >> 16; }
    Tag tag() const { return rest_ >> 17; }
    /// A realloc of the block has begun and not returned.
    bool in_transit() const { return (rest_ >> 16 & 1) != 0; }
    void set_in_transit(bool is_so) { rest_ = (rest_ & ~transit) | (is_so ? transit : 0); }

   private:
    friend class LiveTable;
    static constexpr std::uint64_t transit = 1 << 16;

    std::uint64_t size() const { return (head_ & 0xffff) << 16 | (rest_ & 0xffff); }
    void set(std::uint64_t address, Tag tag, std::uint64_t size) {
      head_ = address << 16 | size >> 16;
      rest_ = tag << 17 | (size & 0xffff);
    }

    std::uint64_t head_ = 0;  // address, upper half of the size; 0: free
    std::uint64_t rest_ = 0;  // tag, in transit, lower half of the size
  };

  LiveTable() : slots_(4096) {}

  std::size_t size() const { return used_; }

  /// The entry of an address, or nullptr. Valid until the next insert or erase.
  Slot* find(std::uint64_t address) {
    Slot& slot = slots_[seek(address)];
    return slot.is_free() ? nullptr : &slot;
  }

  /// Fetches what find() will look at.
  void prefetch(std::uint64_t address) const { __builtin_prefetch(&slots_[home(address)], 1); }

  /// The entry of an address, or the free one where it belongs. Valid until the next insert or erase.
  Slot& place(std::uint64_t address) {
    if ((used_ + 1) * 2 > slots_.size()) grow();
    return slots_[seek(address)];
  }

  /// Puts a block in its place, whatever was there.
  void set(Slot& slot, const format::LiveBlock& block) {
    if (slot.is_free()) {
      ++used_;
    } else if (slot.size() == large) {
      large_.erase(block.address);
    }
    slot.set(block.address, block.tag, block.size < large ? block.size : large);
    if (block.size >= large) large_[block.address] = block.size;
  }

  format::LiveBlock block(const Slot& slot) const {
    const std::uint64_t size = slot.size();
    return {slot.tag(), slot.address(), size != large ? size : large_.at(slot.address())};
  }

  void erase(Slot* slot) {
    if (slot->size() == large) large_.erase(slot->address());
    --used_;
    std::size_t hole = static_cast<std::size_t>(slot - slots_.data());
    for (std::size_t i = next(hole); !slots_[i].is_free(); i = next(i)) {
      if (((i - home(slots_[i].address())) & mask()) < ((i - hole) & mask())) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = Slot{};
  }

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Slot& slot : slots_) {
      if (!slot.is_free()) visit(block(slot));
    }
  }

 private:
  using Slots = std::vector<Slot, HugePages<Slot>>;
  static constexpr std::uint64_t large = 0xffffffff;  // a size that is kept beside, or this one

  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t next(std::size_t i) const { return (i + 1) & mask(); }

  // The multiplication by 2^64 / golden ratio spreads lines of 64 bytes over the high bits; blocks in one of them lie
  // at at multiples of 16, mostly.
  std::size_t home(std::uint64_t address) const {
    return (((address >> 6) * 0x9e3779b97f4a7c15u >> shift_) + (address >> 4 & 3)) & mask();
  }

  std::size_t seek(std::uint64_t address) const {
    std::size_t i = home(address);
    while (!slots_[i].is_free() && slots_[i].address() != address) i = next(i);
    return i;
  }

  void grow() {
    Slots old(slots_.size() * 2);
    old.swap(slots_);
    --shift_;
    for (const Slot& slot : old) {
      if (!slot.is_free()) slots_[seek(slot.address())] = slot;
    }
  }

  Slots slots_;
  unsigned shift_ = 52;  // 64 less the bits of a place
  std::size_t used_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> large_;  // by address
};

}  // namespace cmt::collector
