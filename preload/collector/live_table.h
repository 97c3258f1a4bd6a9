#pragma once

#include <emmintrin.h>
#include <sys/mman.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <unordered_map>
#include <vector>

#include "cmt/event.h"
#include "libcmt/format/live_blocks.h"

namespace cmt::collector {

/// Zeroed memory for a table that is looked at here and there: a large one in huge pages, where the kernel has them,
/// and zeroed by the kernel alone.
template <class T>
struct ZeroedPages {
  using value_type = T;
  static constexpr std::size_t page = std::size_t{2} << 20, line = 64;

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < 2 * page) return static_cast<T*>(std::memset(::operator new (bytes, std::align_val_t{line}), 0, bytes));
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    ::madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    if (count * sizeof(T) < 2 * page) return ::operator delete (memory, std::align_val_t{line});
    ::munmap(memory, count * sizeof(T));
  }
  template <class U>
  void construct(U*) {}  // it is zero
  bool operator==(const ZeroedPages&) const = default;
};

/// The live blocks by address: buckets of four slots, a line of memory each, at most half full; what does not fit goes
/// to the next one. A removal fetches it back, so chains do not grow. All that is known of a block is in its slot, so
/// an event costs one look, at memory that was fetched ahead, without a branch that depends on where in the bucket it
/// is: 48 bits of address, 47 of tag (at ten million allocations a second those last five months), 32 of size; the few
/// larger sizes are kept beside.
///
/// What is in a line of the program's memory is in one bucket: what is allocated and freed together is fetched
/// together.
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

  LiveTable() : slots_(first_slots) {}

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
    if (used_ * 2 > mask_) grow();
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
    slots_[hole] = Slot{};
    const bool was_full = free_in(bucket_of(hole)) == 1u << hole % width;
    if (was_full) fill(hole);
  }

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Slot& slot : slots_) {
      if (!slot.is_free()) visit(block(slot));
    }
  }

 private:
  using Slots = std::vector<Slot, ZeroedPages<Slot>>;
  static constexpr std::uint64_t large = 0xffffffff;  // a size that is kept beside, or this one

  static constexpr std::size_t width = 4, first_slots = 4096;

  std::size_t next(std::size_t bucket) const { return (bucket + width) & mask_; }
  static std::size_t bucket_of(std::size_t i) { return i & ~(width - 1); }

  // The multiplication by 2^64 / golden ratio spreads lines of 64 bytes over the upper half.
  std::size_t home(std::uint64_t address) const { return ((address >> 6) * 0x9e3779b97f4a7c15u >> shift_) * width; }

  /// The heads of a bucket's slots.
  struct Heads {
    __m128i low, high;

    /// Which are equal to a number when `shift` bits of each are dropped, a bit each.
    template <int shift>
    unsigned equal(std::uint64_t number) const {
      const __m128i wanted = _mm_set1_epi64x(static_cast<long long>(number));
      const __m128 first = _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_srli_epi64(low, shift), wanted));
      const __m128 second = _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_srli_epi64(high, shift), wanted));
      const __m128 halves = _mm_and_ps(_mm_shuffle_ps(first, second, 0x88), _mm_shuffle_ps(first, second, 0xdd));
      return static_cast<unsigned>(_mm_movemask_ps(halves));
    }
  };

  Heads heads_of(std::size_t bucket) const {
    const auto* at = reinterpret_cast<const __m128i*>(&slots_[bucket]);
    return {_mm_unpacklo_epi64(at[0], at[1]), _mm_unpacklo_epi64(at[2], at[3])};
  }

  /// Which slots of a bucket are free, a bit each.
  unsigned free_in(std::size_t bucket) const { return heads_of(bucket).equal<0>(0); }

  std::size_t seek(std::uint64_t address) const {
    for (std::size_t bucket = home(address);; bucket = next(bucket)) {
      const Heads heads = heads_of(bucket);
      const unsigned same = heads.equal<16>(address);
      if (same != 0) return bucket + static_cast<std::size_t>(std::countr_zero(same));
      const unsigned free = heads.equal<0>(0);
      if (free != 0) return bucket + static_cast<std::size_t>(std::countr_zero(free));
    }
  }

  /// Fetches what a bucket that was full has kept out, and so on: each block is where a search comes by.
  void fill(std::size_t hole) {
    for (std::size_t bucket = next(bucket_of(hole));; bucket = next(bucket)) {
      const bool was_full = free_in(bucket) == 0;
      const std::size_t far = (bucket - bucket_of(hole)) & mask_;
      for (std::size_t i = bucket; i < bucket + width; ++i) {
        if (slots_[i].is_free() || ((bucket - home(slots_[i].address())) & mask_) < far) continue;
        slots_[hole] = slots_[i];
        slots_[i] = Slot{};
        hole = i;
        break;
      }
      if (!was_full) return;
    }
  }

  void grow() {
    Slots old(slots_.size() * 2);
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    --shift_;
    for (const Slot& slot : old) {
      if (!slot.is_free()) slots_[seek(slot.address())] = slot;
    }
  }

  Slots slots_;
  std::size_t mask_ = first_slots - 1;
  unsigned shift_ = 64 - std::countr_zero(first_slots / width);  // 64 less the bits of a bucket's number
  std::size_t used_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> large_;  // by address
};

}  // namespace cmt::collector
