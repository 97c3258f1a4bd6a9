// Memory for the groups of a BlockTable: arrays of up to 64 blocks, without the cost of malloc.
#pragma once

#include <sys/mman.h>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

namespace cmt {

/// Memory for arrays of up to 64 small structs. A table takes and gives back such arrays by the million, as its groups
/// of blocks shrink and end.
///
/// malloc takes 50 ns for such an array if arrays of many sizes are free: it searches, joins and divides them. The pool
/// has a list of free arrays for each number of blocks, in steps of eight. If a list is empty, the pool divides a
/// longer array. It never joins arrays again, so after a table's groups have shrunk, at most as much is free as the
/// groups took that have ended since. The pool gives all memory back at its end, at once.
///
/// From the second MiB on, memory comes in huge pages if the system has them. Blocks that are freed in no order are on
/// more small pages than the processor's TLB holds, and finding a page again took longer than reading the block.
template <class Block>
class BlockPool {
 public:
  static constexpr std::size_t count_max = 64;

  BlockPool() = default;
  BlockPool(BlockPool&& other) noexcept = default;
  BlockPool& operator=(BlockPool&& other) noexcept = default;

  /// Returns an uninitialised array for `count` blocks, 1 to count_max.
  Block* take(std::size_t count) {
    assert(count >= 1 && count <= count_max);
    const std::size_t steps = steps_of(count);
    for (std::size_t longer = steps; longer <= steps_max; ++longer) {
      if (free_[longer] != nullptr) return take_from(longer, steps);
    }
    fetch();
    return take_from(steps_max, steps);
  }

  /// Takes back an array that take(count) returned.
  void give_back(Block* blocks, std::size_t count) {
    assert(blocks != nullptr && count >= 1 && count <= count_max);
    add(reinterpret_cast<std::byte*>(blocks), steps_of(count));
  }

 private:
  static_assert(std::is_trivially_copyable_v<Block> && sizeof(Block) >= sizeof(void*));
  static constexpr std::size_t step = 8, steps_max = count_max / step, arrays_fetched = 16;

  /// The first bytes of a free array.
  struct Free {
    Free* next;
  };

  static std::size_t steps_of(std::size_t count) { return (count + step - 1) / step; }

  Block* take_from(std::size_t longer, std::size_t steps) {
    assert(longer >= steps && free_[longer] != nullptr);
    Free* const array = free_[longer];
    free_[longer] = array->next;
    auto* const bytes = reinterpret_cast<std::byte*>(array);
    if (longer != steps) add(bytes + steps * step * sizeof(Block), longer - steps);
    return reinterpret_cast<Block*>(bytes);
  }

  void add(std::byte* bytes, std::size_t steps) {
    assert(steps >= 1 && steps <= steps_max);
    free_[steps] = new (bytes) Free{free_[steps]};
  }

  struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte[], FreeMemory>;

  /// Gets memory for some arrays of count_max blocks.
  void fetch() {
    constexpr std::size_t size = count_max * sizeof(Block), small = arrays_fetched * size, huge = 2 << 20;
    const bool is_huge = memory_.size() * small > huge / 2;
    void* const memory = is_huge ? std::aligned_alloc(huge, huge) : std::malloc(small);
    if (memory == nullptr) throw std::bad_alloc();
    memory_.push_back(Memory(static_cast<std::byte*>(memory)));
    if (is_huge) madvise(memory, huge, MADV_HUGEPAGE);  // a hint, which may be refused
    for (std::size_t i = (is_huge ? huge : small) / size; i-- > 0;) add(memory_.back().get() + i * size, steps_max);
  }

  std::array<Free*, steps_max + 1> free_{};  // by steps
  std::vector<Memory> memory_;
};

}  // namespace cmt
