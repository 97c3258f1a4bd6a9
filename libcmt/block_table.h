// The tables of live blocks: BlockTable by tag, which is the one that every reader uses, and the hash table
// ScatteredBlocks on which BlockTable falls back for blocks that outlive their neighbours.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "cmt/event.h"
#include "libcmt/block_pool.h"
#include "libcmt/prefetch.h"

namespace cmt {

/// A live block as a trace knows it.
struct LiveBlock {
  Tag tag = 0;
  std::uint64_t address = 0;  ///< 0: not recorded
  std::uint64_t size = 0;     ///< bytes asked for
};

/// The part of a block that a BlockTable keeps once the block is no longer young. The table derives the tag from the
/// place.
template <class Block>
struct Untagged {
  using Type = Block;
  static const Type& strip(const Block& block) { return block; }
  static const Block& restore(Tag, const Type& kept, Block&) { return kept; }
};
template <>
struct Untagged<LiveBlock> {
  struct Type {
    std::uint64_t address, size;
  };
  static Type strip(const LiveBlock& block) { return {block.address, block.size}; }
  static const LiveBlock& restore(Tag tag, const Type& kept, LiveBlock& block) {
    block.tag = tag;
    block.address = kept.address;
    block.size = kept.size;
    return block;
  }
};

/// A hash table of blocks with sparse keys. `key` is the member by which blocks are found: a tag, or an address.
/// BlockTable keeps the few blocks here that outlive their neighbours.
///
/// The table uses open addressing with linear probing in one array. An entry with the key 0 is free. Three choices keep
/// the table below 96 bytes a live block plus 64 MiB, for a Block of 32 bytes. This includes the moment of growth, when
/// both arrays exist:
///
/// - erase() moves later entries back and leaves no tombstones, so only live blocks count for the load.
///
/// - A multiplication scales the hash to the capacity, which need not be a power of two. A large table grows by a
///   quarter, which costs 32 / 0.8 + 32 / 0.64 = 90 bytes a block. A small one grows faster: less is copied, and the 64
///   MiB cover it.
/// - The table shrinks when three quarters are free.
///
/// Eight consecutive keys share a hash, so blocks that were made together are in the same cache lines.
template <class Block, auto key = &Block::tag>
class ScatteredBlocks {
 public:
  ScatteredBlocks() : entries_(capacity_min) {}

  std::size_t size() const { return size_; }

  /// Adds a block. Returns false, and changes nothing, if its key is in the table.
  bool insert(Block block) {
    assert(block.*key != 0);
    if ((size_ + 1) * 5 > entries_.size() * 4) resize(larger());
    const std::size_t index = find_index(block.*key);
    if (entries_[index].*key != 0) return false;
    entries_[index] = std::move(block);
    ++size_;
    assert(size_ < entries_.size());
    return true;
  }

  /// The block with a key, or nullptr; valid until the next change.
  Block* find(std::uint64_t wanted) {
    Block& block = entries_[find_index(wanted)];
    return wanted != 0 && block.*key != 0 ? &block : nullptr;
  }

  /// Fetches the cache line that find() reads first.
  void prefetch(std::uint64_t wanted) const { cmt::prefetch(&entries_[home_index(wanted)]); }

  /// Removes a block and returns it, or nullopt if the key is not in the table.
  std::optional<Block> erase(std::uint64_t wanted) {
    Block* const found = find(wanted);
    if (found == nullptr) return std::nullopt;
    std::optional<Block> block = std::move(*found);
    erase(found);
    return block;
  }

  /// Removes a block that find() returned.
  void erase(Block* block) {
    assert(block >= entries_.data() && block < entries_.data() + entries_.size() && block->*key != 0);
    close_gap(static_cast<std::size_t>(block - entries_.data()));
    --size_;
    if (entries_.size() > capacity_min && size_ * 4 < entries_.size()) resize(entries_.size() / 2);
  }

  /// Calls `visit` with every block, in no order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Block& block : entries_) {
      if (block.*key != 0) visit(block);
    }
  }

 private:
  static constexpr std::size_t capacity_min = 64;
  static constexpr std::uint64_t group = 8;
  __extension__ using Wide = unsigned __int128;

  /// The next capacity. It doubles below a million entries (120 bytes a block during growth), and grows by a half below
  /// 16 million (100 bytes).
  std::size_t larger() const {
    const std::size_t now = entries_.size();
    if (now < std::size_t{1} << 20) return now * 2;
    return now < std::size_t{1} << 24 ? now + now / 2 : now + now / 4;
  }

  std::size_t home_index(std::uint64_t wanted) const {
    const std::uint64_t mixed = (wanted / group) * 0x9e3779b97f4a7c15u;
    const auto scaled = static_cast<std::size_t>((static_cast<Wide>(mixed) * entries_.size()) >> 64);
    return wrap(scaled + wanted % group);
  }

  std::size_t wrap(std::size_t index) const { return index < entries_.size() ? index : index - entries_.size(); }

  /// The index of the entry with a key, or of the free entry where it would be.
  std::size_t find_index(std::uint64_t wanted) const {
    std::size_t index = home_index(wanted);
    while (entries_[index].*key != 0 && entries_[index].*key != wanted) index = wrap(index + 1);
    return index;
  }

  /// Moves entries back into a gap, until no search meets a gap before its entry.
  void close_gap(std::size_t gap) {
    for (std::size_t index = wrap(gap + 1); entries_[index].*key != 0; index = wrap(index + 1)) {
      const std::size_t from_home = distance(home_index(entries_[index].*key), index);
      if (from_home < distance(gap, index)) continue;
      entries_[gap] = std::move(entries_[index]);
      gap = index;
    }
    entries_[gap].*key = 0;
  }

  std::size_t distance(std::size_t from, std::size_t to) const {
    return to >= from ? to - from : to + entries_.size() - from;
  }

  void resize(std::size_t capacity) {
    std::vector<Block> old(capacity < capacity_min ? capacity_min : capacity);
    old.swap(entries_);
    assert(size_ < entries_.size());
    for (Block& block : old) {
      if (block.*key != 0) entries_[find_index(block.*key)] = std::move(block);
    }
  }

  std::vector<Block> entries_;
  std::size_t size_ = 0;
};

/// The live blocks by tag. `Block` is a small struct with a member `tag`; its other members are the user's.
///
/// Tags rise by one an allocation and most blocks die young, so the table keeps a block by its age:
///
/// - Young blocks are in a ring of groups of 64 consecutive tags: some 400 KB, which stay in the cache. A tag gives the
///   position directly, without hash or search. A block that dies here costs 2 ns in all.
///
/// - A group that leaves the ring is packed without its dead blocks, and is found by a hash of its number. It is packed
///   again when half of its blocks have died. A program that frees in the order of its allocations meets the same group
///   64 times in a row.
///
/// - When fewer than eight blocks of a group live, they move to ScatteredBlocks.
///
/// Memory: the ring, and below 48 bytes a live block for a LiveBlock, below 96 for a Block of 32 bytes. With the 1.4
/// million live blocks of a JSON parser in Python an operation costs 8 ns, with tsl::robin_map 70.
template <class Block>
class BlockTable {
 public:
  std::size_t size() const { return size_; }

  /// Adds a block. Returns false, and changes nothing, if its tag is in the table. It is inline so that the block's
  /// members are stored directly in the table: a copy of the whole block would wait for the stores of its parts.
  [[gnu::always_inline]] bool insert(const Block& block) {
    assert(block.tag != 0);
    if (block.tag <= newest_) [[unlikely]]
      return insert_late(block);
    const Tag number = block.tag / span;
    Young& group = young_[number % young_.size()];
    if (group.number != number) [[unlikely]]
      replace(group, number);
    newest_ = block.tag;
    put_young(group, block);
    return true;
  }

  /// Returns the block of a tag, or nullptr if it is not alive. Valid until the next change or the next call of find().
  const Block* find(Tag tag) {
    const Young& group = young_[tag / span % young_.size()];
    if (group.number != tag / span) return find_old(tag);
    return (group.live & bit(tag)) != 0 ? &group.blocks[tag % span] : nullptr;
  }

  /// Fetches the memory that find() and erase() read first. To be called some events before them. Young blocks need no
  /// prefetch.
  void prefetch(Tag tag) const {
    if (has_left_ring(tag)) packed_.prefetch(tag / span + 1);
  }

  /// Fetches the memory that find() and erase() read next. To be called between prefetch() and them.
  void prefetch_block(Tag tag) {
    if (has_left_ring(tag)) prefetch_old(tag);
  }

  /// Removes a block and returns it, or nullptr if the tag is not alive. Valid until the next change. (A copy would
  /// cost 10 ns: a load of all its bytes waits for the stores of its parts.)
  const Block* erase(Tag tag) {
    Young& group = young_[tag / span % young_.size()];
    if (group.number != tag / span) return erase_old(tag);
    if ((group.live & bit(tag)) == 0) return nullptr;
    group.live &= ~bit(tag);
    --size_;
    return &group.blocks[tag % span];
  }

  /// Calls `visit` with every block, in no order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Young& group : young_) {
      for (std::uint64_t left = group.live; left != 0; left &= left - 1) visit(group.blocks[std::countr_zero(left)]);
    }
    packed_.for_each([&](const Packed& group) {
      Block space;
      for (std::uint64_t left = group.live; left != 0; left &= left - 1) visit(group.block(left & -left, space));
    });
    scattered_.for_each(visit);
  }

 private:
  using Kept = typename Untagged<Block>::Type;

  static constexpr Tag span = 64;
  static constexpr Tag no_number = ~Tag{0};
  static constexpr std::size_t packed_min = 8;

  struct Young {
    Tag number = no_number;
    std::uint64_t live = 0;
    std::unique_ptr<Block[]> blocks;  // by tag % span
  };

  struct Packed {
    Tag tag = 0;             // the group's number + 1
    std::uint64_t kept = 0;  // a bit for each tag that has an entry in `blocks`
    std::uint64_t live = 0;  // a bit for each of these that is alive
    Kept* blocks = nullptr;  // in the order of the bits of `kept`, in the pool

    Kept* at(std::uint64_t one) const { return &blocks[count_bits(kept & (one - 1))]; }
    const Block& block(std::uint64_t one, Block& space) const {
      return Untagged<Block>::restore((tag - 1) * span + static_cast<Tag>(std::countr_zero(one)), *at(one), space);
    }
  };

  /// std::popcount would be a library call, because the processor may lack the instruction.
  static std::size_t count_bits(std::uint64_t bits) {
    bits -= bits >> 1 & 0x5555555555555555;
    bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
    return ((bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56;
  }

  /// Whether the group of a tag is older than all groups of the ring. False for tag 0.
  bool has_left_ring(Tag tag) const { return tag - 1 < ring_begin_; }

  void prefetch_old(Tag tag) {
    const Packed* const group = packed_.find(tag / span + 1);
    if (group != nullptr && (group->live & bit(tag)) != 0) {
      cmt::prefetch(group->at(bit(tag)));
    } else {
      scattered_.prefetch(tag);
    }
  }

  static std::uint64_t bit(Tag tag) { return std::uint64_t{1} << tag % span; }

  void put_young(Young& group, const Block& block) {
    assert(group.number == block.tag / span && (group.live & bit(block.tag)) == 0);
    group.blocks[block.tag % span] = block;
    group.live |= bit(block.tag);
    ++size_;
  }

  /// Adds a block whose tag does not rise.
  [[gnu::noinline]] bool insert_late(const Block& block) {
    if (find(block.tag) != nullptr) return false;
    const Tag number = block.tag / span;
    Young& group = young_[number % young_.size()];
    if (group.number != number) return ++size_, scattered_.insert(block);
    put_young(group, block);
    return true;
  }

  /// Moves a group out of the ring, and puts an empty group `number` there.
  [[gnu::noinline]] void replace(Young& group, Tag number) {
    assert(group.number == no_number || group.number < number);
    if (group.live != 0) {
      pack(group.number, group.live, [&](std::uint64_t one) -> decltype(auto) {
        return Untagged<Block>::strip(group.blocks[std::countr_zero(one)]);
      });
    }
    if (group.blocks == nullptr) group.blocks = std::make_unique<Block[]>(span);
    group.number = number;
    group.live = 0;
    if (number >= young_.size()) ring_begin_ = (number - young_.size()) * span;
  }

  /// Packs the live blocks of a group, or moves them to the hash table if they are few.
  template <class At>
  void pack(Tag number, std::uint64_t live, const At& at) {
    const std::size_t count = count_bits(live);
    assert(count != 0);
    if (count < packed_min) {
      for (std::uint64_t left = live; left != 0; left &= left - 1) {
        const Tag tag = number * span + static_cast<Tag>(std::countr_zero(left));
        scattered_.insert(Untagged<Block>::restore(tag, at(left & -left), found_));
      }
      return;
    }
    const Packed fresh{number + 1, live, live, pool_.take(count)};
    Kept* out = fresh.blocks;
    for (std::uint64_t left = live; left != 0; left &= left - 1) *out++ = at(left & -left);
    [[maybe_unused]] const bool is_new = packed_.insert(fresh);
    assert(is_new && out == fresh.blocks + count);
  }

  [[gnu::noinline]] const Block* find_old(Tag tag) {
    const Packed* const group = packed_.find(tag / span + 1);
    return group != nullptr && (group->live & bit(tag)) != 0 ? &group->block(bit(tag), found_) : scattered_.find(tag);
  }

  [[gnu::noinline]] const Block* erase_old(Tag tag) {
    Packed* const group = packed_.find(tag / span + 1);
    if (group == nullptr || (group->live & bit(tag)) == 0) {
      Block* const block = scattered_.find(tag);
      if (block == nullptr) return nullptr;
      assert(size_ != 0);
      ended_ = *block;
      scattered_.erase(block);
      --size_;
      return &ended_;
    }
    --size_;
    const Block& ended = group->block(bit(tag), ended_);
    if constexpr (std::is_same_v<Kept, Block>) ended_ = ended;
    group->live &= ~bit(tag);
    if (count_bits(group->live) * 2 <= count_bits(group->kept)) {
      const Packed old = *group;
      packed_.erase(group);
      pack(old.tag - 1, old.live, [&](std::uint64_t one) -> const Kept& { return *old.at(one); });
      pool_.give_back(old.blocks, count_bits(old.kept));
    }
    return &ended_;
  }

  std::array<Young, 256> young_;
  BlockPool<Kept> pool_;
  ScatteredBlocks<Packed> packed_;
  ScatteredBlocks<Block> scattered_;
  Block ended_{};  // the block that erase() returned last, unless it was young
  Block found_{};  // the block that find() returned last, if the table keeps no whole Block
  Tag newest_ = 0;
  Tag ring_begin_ = 0;  // tags up to this one have left the ring
  std::size_t size_ = 0;
};

}  // namespace cmt
