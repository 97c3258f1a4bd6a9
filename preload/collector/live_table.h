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
#include "libcmt/trace/sink.h"

namespace cmt::collector {

/// An allocator of zeroed memory for a table that is read at random: from 4 MiB on in huge pages, where the kernel has
/// them, which the kernel alone zeroes.
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
  void construct(U*) {}  // the memory is zero already
  bool operator==(const ZeroedPages&) const = default;
};

/// The live blocks by address, while order is rebuilt and the trace is written.
///
/// An open hash table. A bucket is a cache line of four entries, at most half of all entries are used, and a block that
/// does not fit its bucket goes to the next one. Erasing moves such a block back, so chains do not grow. An entry holds
/// all that is known of a block, so an event costs one access, to memory that was prefetched, without a branch that
/// depends on where in the bucket the entry is: 48 bits of address, 47 of tag (enough for five months of ten million
/// allocations a second), 32 of size. Larger sizes are kept beside the table.
///
/// Addresses in one cache line of the program's memory share a bucket: blocks that are allocated and freed together are
/// then fetched together.
class LiveTable final : public BlockKeeper {
 public:
  class Entry {
   public:
    bool is_free() const { return head_ == 0; }
    std::uint64_t address() const { return head_ >> 16; }
    Tag tag() const { return rest_ >> 17; }
    /// A realloc of the block has begun and not returned.
    bool is_in_realloc() const { return (rest_ >> 16 & 1) != 0; }
    /// Or `large`.
    std::uint64_t size() const { return (head_ & 0xffff) << 16 | (rest_ & 0xffff); }
    void set_in_realloc(bool is_so) { rest_ = (rest_ & ~in_realloc) | (is_so ? in_realloc : 0); }

   private:
    friend class LiveTable;
    static constexpr std::uint64_t in_realloc = 1 << 16;

    void set(std::uint64_t address, Tag tag, std::uint64_t size) {
      head_ = address << 16 | size >> 16;
      rest_ = tag << 17 | (size & 0xffff);
    }

    std::uint64_t head_ = 0;  // address, upper half of the size; 0: free
    std::uint64_t rest_ = 0;  // tag, in_realloc, lower half of the size
  };

  /// Sizes from here on are kept beside the table.
  static constexpr std::uint64_t large = 0xffffffff;

  /// `first_tag`: of the first block of the trace. Blocks with a lower one are from before its start.
  explicit LiveTable(Tag first_tag) : first_tag_(first_tag), entries_(first_entries) {}

  Tag first_tag() const { return first_tag_; }
  std::size_t live_blocks() const override { return used_; }
  std::vector<format::LiveBlock> list_live_blocks() const override {
    std::vector<format::LiveBlock> blocks;
    blocks.reserve(used_);
    for (const Entry& entry : entries_) {
      if (!entry.is_free() && entry.tag() >= first_tag_) blocks.push_back(block(entry));
    }
    format::sort_by_tag(blocks);
    return blocks;
  }

  /// The entry of an address, or nullptr. Valid until the next insertion or erasure.
  Entry* find(std::uint64_t address) {
    Entry& entry = entries_[index_of(address)];
    return entry.is_free() ? nullptr : &entry;
  }

  /// Prefetches what find() will read.
  void prefetch(std::uint64_t address) const { __builtin_prefetch(&entries_[home(address)], 1); }

  /// The entry of an address, or a free one for it. Valid until the next insertion or erasure.
  Entry& find_or_reserve(std::uint64_t address) {
    if (used_ * 2 > mask_) grow();
    return entries_[index_of(address)];
  }

  /// Puts a block into an entry that find_or_reserve() gave for its address, whatever was there.
  void set(Entry& entry, const format::LiveBlock& block) {
    if (entry.is_free()) {
      ++used_;
    } else if (entry.size() == large) {
      large_.erase(block.address);
    }
    entry.set(block.address, block.tag, block.size < large ? block.size : large);
    if (block.size >= large) large_[block.address] = block.size;
  }

  /// The block of an entry; a blank one where it is from before the trace's start.
  format::LiveBlock block(const Entry& entry) const {
    if (entry.tag() < first_tag_) return {};
    const std::uint64_t size = entry.size();
    return {entry.tag(), entry.address(), size != large ? size : large_.at(entry.address())};
  }

  /// Whether an entry is of a block of this trace that no realloc has been given, and of a size below `large`.
  bool is_plain(const Entry& entry) const {
    return entry.tag() >= first_tag_ && !entry.is_in_realloc() && entry.size() != large;
  }

  void erase(Entry* entry) {
    if (entry->size() == large) large_.erase(entry->address());
    --used_;
    const std::size_t hole = static_cast<std::size_t>(entry - entries_.data());
    entries_[hole] = Entry{};
    const bool was_full = free_in(bucket_of(hole)) == 1u << hole % width;
    if (was_full) refill(hole);
  }

 private:
  using Entries = std::vector<Entry, ZeroedPages<Entry>>;
  static constexpr std::size_t width = 4, first_entries = 4096;

  std::size_t next(std::size_t bucket) const { return (bucket + width) & mask_; }
  static std::size_t bucket_of(std::size_t i) { return i & ~(width - 1); }

  // The multiplication by 2^64 / golden ratio spreads lines of 64 bytes over the upper half.
  std::size_t home(std::uint64_t address) const { return ((address >> 6) * 0x9e3779b97f4a7c15u >> shift_) * width; }

  /// The first words of a bucket's entries.
  struct Heads {
    __m128i low, high;

    /// A bit for each that equals a number when its lowest `shift` bits are dropped.
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
    const auto* at = reinterpret_cast<const __m128i*>(&entries_[bucket]);
    return {_mm_unpacklo_epi64(at[0], at[1]), _mm_unpacklo_epi64(at[2], at[3])};
  }

  /// A bit for each free entry of a bucket.
  unsigned free_in(std::size_t bucket) const { return heads_of(bucket).equal<0>(0); }

  std::size_t index_of(std::uint64_t address) const {
    for (std::size_t bucket = home(address);; bucket = next(bucket)) {
      const Heads heads = heads_of(bucket);
      const unsigned same = heads.equal<16>(address);
      if (same != 0) return bucket + static_cast<std::size_t>(std::countr_zero(same));
      const unsigned free = heads.equal<0>(0);
      if (free != 0) return bucket + static_cast<std::size_t>(std::countr_zero(free));
    }
  }

  /// Moves a block that did not fit a full bucket into its new hole, then one into the hole that it leaves, and so on.
  /// Each block is then where a search passes.
  void refill(std::size_t hole) {
    for (std::size_t bucket = next(bucket_of(hole));; bucket = next(bucket)) {
      const bool was_full = free_in(bucket) == 0;
      const std::size_t far = (bucket - bucket_of(hole)) & mask_;
      for (std::size_t i = bucket; i < bucket + width; ++i) {
        if (entries_[i].is_free() || ((bucket - home(entries_[i].address())) & mask_) < far) continue;
        entries_[hole] = entries_[i];
        entries_[i] = Entry{};
        hole = i;
        break;
      }
      if (!was_full) return;
    }
  }

  void grow() {
    Entries old(entries_.size() * 2);
    old.swap(entries_);
    mask_ = entries_.size() - 1;
    --shift_;
    for (const Entry& entry : old) {
      if (!entry.is_free()) entries_[index_of(entry.address())] = entry;
    }
  }

  Tag first_tag_;
  Entries entries_;
  std::size_t mask_ = first_entries - 1;
  unsigned shift_ = 64 - std::countr_zero(first_entries / width);  // 64 less the bits of a bucket's number
  std::size_t used_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> large_;  // by address
};

}  // namespace cmt::collector
