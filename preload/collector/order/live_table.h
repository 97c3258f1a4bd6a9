// The collector's table of live blocks by address: one access to one cache line for each event.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <unordered_map>
#include <vector>

#if defined __SSE2__
#include <emmintrin.h>
#endif

#include "cmt/event.h"
#include "libcmt/format/live_blocks.h"
#include "libcmt/prefetch.h"
#include "libcmt/trace/writer/sink.h"

namespace cmt::collector {

/// An allocator of zeroed memory for a table that is read at random. From 4 MiB on, the memory is in huge pages if the
/// kernel has them, and only the kernel zeroes it.
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
  /// Gives the memory of `items` from `first` on back to the kernel, out of an allocation of `count`. The items become
  /// zero, unless the allocation is small.
  static void give_back(T* memory, std::size_t count, std::size_t first, std::size_t items) {
    if (count * sizeof(T) >= 2 * page) ::madvise(memory + first, items * sizeof(T), MADV_DONTNEED);
  }
  template <class U>
  void construct(U*) {}  // the memory is zeroed already
  bool operator==(const ZeroedPages&) const = default;
};

/// The live blocks by address, while order is rebuilt and the trace is written.
///
/// The table uses open addressing. A bucket is a cache line of four blocks. A block that does not fit its bucket goes
/// to the next one. Erasing moves such a block back, so chains do not grow. A bucket has all fields of its blocks, so
/// an event costs one access, to prefetched memory. One comparison of four keys, the lower halves of the addresses,
/// finds the place without a branch that depends on the place.
///
/// Memory: 8 MiB, and 32 bytes for each of the most blocks that lived at once. A small table has at most half of its
/// places in use, and grows twofold. A large one grows by a half when three quarters are in use. A bucket's number is
/// its hash scaled to their count, so growing visits the buckets of both tables in rising order. A large table gives
/// back the old ones on the way, so both together hardly take more than the new one.
///
/// An entry has 48 bits of address, 47 of tag (enough for five months of ten million allocations a second), and 31 of
/// size. Larger sizes are in a map of their own.
///
/// Addresses in one cache line of the program's memory share a bucket, so blocks that are allocated and freed together
/// are fetched together.
class LiveTable final : public LiveBlockSource {
  static constexpr unsigned width = 4;

  struct alignas(64) Bucket {
    std::uint32_t keys[width];   // the lower half of the address, or 1 for its lowest bit; 0: the place is free
    std::uint32_t sizes[width];  // 31 bits; above them the address's lowest bit
    std::uint64_t rests[width];  // the address's upper 16 bits, in_realloc, the tag
  };
  static constexpr std::uint64_t in_realloc = 1 << 16;
  static constexpr unsigned tag_at = 17;

 public:
  /// Sizes from here on are in a map of their own.
  static constexpr std::uint64_t large = 0x7fffffff;

  /// A place in the table. Valid until the next insertion or erasure.
  class Place {
   public:
    bool is_free() const { return bucket_->keys[i_] == 0; }
    std::uint64_t address() const {
      const std::uint64_t low = (bucket_->keys[i_] & ~std::uint32_t{1}) | bucket_->sizes[i_] >> 31;
      return (bucket_->rests[i_] & 0xffff) << 32 | low;
    }
    Tag tag() const { return bucket_->rests[i_] >> tag_at; }
    /// Whether a realloc of the block has begun and not returned.
    bool is_in_realloc() const { return (bucket_->rests[i_] & in_realloc) != 0; }
    void set_in_realloc(bool is_so) {
      bucket_->rests[i_] = (bucket_->rests[i_] & ~in_realloc) | (is_so ? in_realloc : 0);
    }

   private:
    friend class LiveTable;
    Place(Bucket& bucket, unsigned i) : bucket_(&bucket), i_(i) {}
    std::uint32_t size() const { return bucket_->sizes[i_] & large; }

    Bucket* bucket_;
    unsigned i_;
  };

  /// `first_tag`: of the first block of the trace. Blocks with a lower tag are from before its start.
  explicit LiveTable(Tag first_tag) : first_tag_(first_tag), buckets_(first_buckets) {}

  Tag first_tag() const { return first_tag_; }
  std::size_t live_blocks() const override { return used_; }
  /// The memory of the buckets.
  std::size_t bytes() const { return buckets_.size() * sizeof(Bucket); }
  std::vector<format::LiveBlock> list_live_blocks() const override {
    std::vector<format::LiveBlock> blocks;
    blocks.reserve(used_);
    for_each([&](const Place& place) {
      if (place.tag() >= first_tag_) blocks.push_back(block(place));
    });
    format::sort_by_tag(blocks);
    return blocks;
  }

  /// The place of the block at an address, or nullopt.
  std::optional<Place> find(std::uint64_t address) {
    const Place place = place_of(address);
    if (place.is_free()) return std::nullopt;
    return place;
  }

  /// Prefetches the memory that is read for an address.
  void prefetch(std::uint64_t address) const { prefetch_to_change(&buckets_[home(address)]); }

  /// The place of the block at an address, or a free one for it.
  Place find_or_reserve(std::uint64_t address) {
    if (used_ == used_max_) grow();
    return place_of(address);
  }

  /// Puts a block into a place that find_or_reserve() returned for its address. Replaces a block that was there.
  void set(Place place, const format::LiveBlock& block) {
    assert(place.is_free() ? used_ < used_max_ : place.address() == block.address);
    if (place.is_free()) {
      ++used_;
    } else if (place.size() == large) {
      large_.erase(block.address);
    }
    put(place, block.address, block.tag, static_cast<std::uint32_t>(std::min(block.size, large)));
    if (block.size >= large) large_[block.address] = block.size;
  }

  /// Adds and removes many blocks. It has copies of the table's members, which the compiler can keep in registers.
  /// Meanwhile the table must not be used otherwise.
  class Run {
   public:
    /// `added_max`: the most blocks that will be added.
    Run(LiveTable& table, std::size_t added_max) : table_(table) {
      while (table.used_ + added_max > table.used_max_) table.grow();
      buckets_ = table.buckets_.data();
      count_ = table.buckets_.size();
      first_tag_ = table.first_tag_;
    }
    ~Run() { table_.used_ += added_; }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    void prefetch(std::uint64_t address) const { prefetch_to_change(&buckets_[home(address, count_)]); }

    /// Adds a block of a size below `large`. Returns false, and changes nothing, if a block lives at its address.
    bool insert(std::uint64_t address, Tag tag, std::uint32_t size) {
      assert(size < large);
      Bucket& bucket = buckets_[home(address, count_)];
      const unsigned free = free_in(bucket);
      Place place(bucket, static_cast<unsigned>(std::countr_zero(free)));
      if (with_key(bucket, key_of(address)) != 0 || free == 0) {
        place = table_.place_of(address);
        if (!place.is_free()) return false;
      }
      ++added_;
      put(place, address, tag, size);
      return true;
    }

    /// Removes the block at an address and returns its tag and size. Returns false, and changes nothing, unless there
    /// is such a block, of this trace, in no realloc, and of a size below `size_max`. `size_max` is at most `large`.
    bool take(std::uint64_t address, Tag& tag, std::uint32_t& size, std::uint64_t size_max = large) {
      Bucket& bucket = buckets_[home(address, count_)];
      const unsigned same = with_key(bucket, key_of(address));
      Place place(bucket, static_cast<unsigned>(std::countr_zero(same)));
      if (same == 0 || place.address() != address) {
        place = table_.place_of(address);
        if (place.is_free()) return false;
      }
      tag = place.tag();
      size = place.size();
      if (place.is_in_realloc() || tag < first_tag_ || size >= size_max) return false;
      --added_;
      table_.make_free(place);
      return true;
    }

   private:
    LiveTable& table_;
    Bucket* buckets_;
    std::size_t count_;
    Tag first_tag_;
    std::size_t added_ = 0;  // added less removed
  };

  /// The block at a place; a blank one if it is from before the trace's start.
  format::LiveBlock block(const Place& place) const {
    assert(!place.is_free());
    if (place.tag() < first_tag_) return {};
    const std::uint64_t size = place.size(), address = place.address();
    return {place.tag(), address, size != large ? size : large_.at(address)};
  }

  void erase(Place place) {
    assert(!place.is_free() && used_ != 0);
    if (place.size() == large) large_.erase(place.address());
    --used_;
    make_free(place);
  }

 private:
  using Buckets = std::vector<Bucket, ZeroedPages<Bucket>>;

  /// A table of `large_buckets`, 4 MiB, is a large one.
  static constexpr std::size_t first_buckets = 64, large_buckets = 1 << 16;

  std::size_t next(std::size_t bucket) const { return bucket + 1 != buckets_.size() ? bucket + 1 : 0; }
  /// How many buckets `to` is after `from`.
  std::size_t distance(std::size_t from, std::size_t to) const {
    return to >= from ? to - from : to + buckets_.size() - from;
  }

  // The multiplication by 2^64 / golden ratio spreads lines of 64 bytes over the upper half.
  static std::size_t home(std::uint64_t address, std::size_t count) {
    return ((address >> 6) * 0x9e3779b97f4a7c15u >> 32) * count >> 32;
  }
  std::size_t home(std::uint64_t address) const { return home(address, buckets_.size()); }

  static std::size_t used_max_of(std::size_t buckets) {
    return buckets < large_buckets ? buckets * width / 2 : buckets * width / 4 * 3;
  }

  static std::uint32_t key_of(std::uint64_t address) { return static_cast<std::uint32_t>(address) | 1; }

  /// A bit for each place of a bucket that has a key.
  static unsigned with_key(const Bucket& bucket, std::uint32_t key) {
#if defined __SSE2__
    const __m128i keys = _mm_load_si128(reinterpret_cast<const __m128i*>(bucket.keys));
    const __m128i same = _mm_cmpeq_epi32(keys, _mm_set1_epi32(static_cast<int>(key)));
    return static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(same)));
#else
    unsigned same = 0;
    for (unsigned i = 0; i < std::size(bucket.keys); ++i) same |= static_cast<unsigned>(bucket.keys[i] == key) << i;
    return same;
#endif
  }
  static unsigned free_in(const Bucket& bucket) { return with_key(bucket, 0); }

  /// The place of the block at an address, or a free place for it.
  [[gnu::noinline]] Place place_of(std::uint64_t address) {
    for (std::size_t i = home(address);; i = next(i)) {
      Bucket& bucket = buckets_[i];
      for (unsigned same = with_key(bucket, key_of(address)); same != 0; same &= same - 1) {
        const Place place(bucket, static_cast<unsigned>(std::countr_zero(same)));
        if (place.address() == address) return place;  // nearly always
      }
      const unsigned free = free_in(bucket);
      if (free != 0) return {bucket, static_cast<unsigned>(std::countr_zero(free))};
    }
  }

  static void put(const Place& place, std::uint64_t address, Tag tag, std::uint32_t size) {
    Bucket& bucket = *place.bucket_;
    bucket.keys[place.i_] = key_of(address);
    bucket.sizes[place.i_] = size | static_cast<std::uint32_t>(address) << 31;
    bucket.rests[place.i_] = tag << tag_at | address >> 32;
  }

  void make_free(const Place& place) {
    assert(!place.is_free());
    const bool was_full = free_in(*place.bucket_) == 0;
    place.bucket_->keys[place.i_] = 0;
    if (was_full) refill(place);
  }

  /// Moves a block that did not fit a full bucket into the bucket's new hole, then another block into the hole that
  /// this leaves, and so on. So every search passes the block that it looks for.
  [[gnu::noinline]] void refill(Place hole) {
    assert(hole.is_free());
    const auto number_of = [&](const Bucket* bucket) { return static_cast<std::size_t>(bucket - buckets_.data()); };
    for (std::size_t i = next(number_of(hole.bucket_));; i = next(i)) {
      Bucket& bucket = buckets_[i];
      const bool was_full = free_in(bucket) == 0;
      const std::size_t far = distance(number_of(hole.bucket_), i);
      for (unsigned j = 0; j < width; ++j) {
        const Place place(bucket, j);
        if (place.is_free() || distance(home(place.address()), i) < far) continue;
        move(place, hole);
        hole = place;
        break;
      }
      if (!was_full) return;
    }
  }

  static void move(const Place& from, const Place& to) {
    assert(!from.is_free());
    to.bucket_->keys[to.i_] = from.bucket_->keys[from.i_];
    to.bucket_->sizes[to.i_] = from.bucket_->sizes[from.i_];
    to.bucket_->rests[to.i_] = from.bucket_->rests[from.i_];
    from.bucket_->keys[from.i_] = 0;
  }

  [[gnu::noinline]] void grow() {
    assert(used_ <= used_max_);
    const std::size_t count = buckets_.size();
    Buckets old(count < large_buckets ? count * 2 : count / 2 * 3);
    assert(old.size() >> 32 == 0);
    old.swap(buckets_);
    used_max_ = used_max_of(buckets_.size());
    constexpr std::size_t step = ZeroedPages<Bucket>::page / sizeof(Bucket);
    for (std::size_t i = 0; i < count; ++i) {
      for (unsigned j = 0; j < width; ++j) {
        const Place place(old[i], j);
        if (!place.is_free()) move(place, place_of(place.address()));
      }
      if (i % step == step - 1) ZeroedPages<Bucket>::give_back(old.data(), count, i + 1 - step, step);
    }
  }

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Bucket& bucket : buckets_) {
      for (unsigned j = 0; j < width; ++j) {
        const Place place(const_cast<Bucket&>(bucket), j);
        if (!place.is_free()) visit(place);
      }
    }
  }

  Tag first_tag_;
  Buckets buckets_;
  std::size_t used_ = 0, used_max_ = used_max_of(first_buckets);
  std::unordered_map<std::uint64_t, std::uint64_t> large_;  // by address
};

}  // namespace cmt::collector
