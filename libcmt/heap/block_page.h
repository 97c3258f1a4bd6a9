#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "cmt/event.h"

namespace cmt::heap {

struct FreePage {
  void operator()(void* page) const { std::free(page); }
};

/// What a page keeps of a block beside where it begins.
struct PackedBlock {
  std::uint64_t born = 0;
  Tag tag = 0;
  std::uint32_t size = 0;
  std::uint32_t slop = 0;
};

/// The blocks that begin on one page of 4 KiB, sorted by address: 8 bytes for itself, then 24 for each block, then 2
/// for the offset at which it begins.
///
/// One piece of memory a page, which is enlarged by halves and reduced when three quarters are free. Adding and
/// removing move what lies behind: some 2 KiB at most where blocks are 16-byte aligned and touch, and mostly much less.
/// Offsets lie together, so that a search stays within few cache lines. (Comparing eight at once, and searching without
/// a jump, were measured and lost: a program's next block is mostly beside its last, which the processor learns.)
class BlockPage {
 public:
  using Pointer = std::unique_ptr<BlockPage, FreePage>;

  std::size_t size() const { return size_; }
  std::uint64_t offset(std::size_t rank) const { return static_cast<std::uint64_t>(offsets()[rank]); }
  const PackedBlock& block(std::size_t rank) const { return blocks()[rank]; }

  /// How many blocks begin below an offset.
  std::size_t rank(std::uint64_t offset) const {
    const std::uint16_t* base = offsets();
    std::size_t count = size_;
    while (count > 1) {
      const std::size_t half = count / 2;
      base += base[half - 1] < offset ? half : 0;
      count -= half;
    }
    return static_cast<std::size_t>(base - offsets()) + (count == 1 && *base < offset ? 1 : 0);
  }

  bool holds(std::size_t rank, std::uint64_t at) const { return rank < size_ && offset(rank) == at; }

  /// Fetches it into the caches, for a walk that comes by soon.
  void prefetch() const {
    const char* const begin = reinterpret_cast<const char*>(this);
    for (std::size_t at = 64; at < bytes(size_); at += 64) __builtin_prefetch(begin + at);
  }

  /// Puts a block at a rank. The page may be null, and may move.
  static void insert(Pointer& page, std::size_t rank, std::uint64_t offset, const PackedBlock& block);

  /// Removes the block at a rank. The page is null afterwards if it was the last one, and may move.
  static void erase(Pointer& page, std::size_t rank);

 private:
  static std::size_t bytes(std::size_t capacity) {
    return sizeof(BlockPage) + padded(capacity) * sizeof(std::uint16_t) + capacity * sizeof(PackedBlock);
  }
  static std::size_t padded(std::size_t capacity) { return (capacity + 3) / 4 * 4; }  // blocks begin at words

  const std::uint16_t* offsets() const { return reinterpret_cast<const std::uint16_t*>(this + 1); }
  std::uint16_t* offsets() { return reinterpret_cast<std::uint16_t*>(this + 1); }
  const PackedBlock* blocks() const { return reinterpret_cast<const PackedBlock*>(offsets() + padded(capacity_)); }
  PackedBlock* blocks() { return reinterpret_cast<PackedBlock*>(offsets() + padded(capacity_)); }
  static void resize(Pointer& page, std::size_t capacity);

  std::uint32_t size_;
  std::uint32_t capacity_;
};

static_assert(sizeof(BlockPage) % alignof(PackedBlock) == 0);

}  // namespace cmt::heap
