#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cmt/event.h"

namespace cmt {

/// Blocks by tag where tags lie far apart: what BlockTable keeps of the few that outlive their neighbours.
///
/// Open addressing with linear probing in one array, where tag 0 marks a free place. Three choices keep it within 96
/// bytes a live block and 64 MiB for a Block of 32 bytes, also in the moment in which it grows and both arrays exist:
///
/// - a removal moves later entries back instead of leaving a tombstone, so load is live blocks and nothing else;
/// - a hash is scaled to the capacity by a multiplication, so the capacity need not be a power of two. A large table
///   grows by a quarter, 32 / 0.8 + 32 / 0.64 = 90 bytes, a small one faster: less is copied, and the 64 MiB pay for
///   it;
/// - it shrinks when three quarters are free.
///
/// Tags are hashed in groups of eight: what was made together lies in the same cache lines.
template <class Block>
class ScatteredBlocks {
 public:
  ScatteredBlocks() : places_(places_min) {}

  std::size_t size() const { return size_; }

  /// Adds a block. False, and nothing changes, if its tag is there.
  bool insert(Block block) {
    assert(block.tag != 0);
    if ((size_ + 1) * 5 > places_.size() * 4) resize(larger());
    const std::size_t place = find_place(block.tag);
    if (places_[place].tag != 0) return false;
    places_[place] = std::move(block);
    ++size_;
    return true;
  }

  /// The block of a tag, or nullptr; valid until the next change.
  Block* find(Tag tag) {
    Block& block = places_[find_place(tag)];
    return tag != 0 && block.tag != 0 ? &block : nullptr;
  }

  /// Fetches what find() will look at.
  void prefetch(Tag tag) const { __builtin_prefetch(&places_[home(tag)]); }

  /// Removes a block and returns it, or nothing where the tag is not alive.
  std::optional<Block> erase(Tag tag) {
    Block* const found = find(tag);
    if (found == nullptr) return std::nullopt;
    std::optional<Block> block = std::move(*found);
    erase(found);
    return block;
  }

  /// Removes a block that find() found.
  void erase(Block* block) {
    close_gap(static_cast<std::size_t>(block - places_.data()));
    --size_;
    if (places_.size() > places_min && size_ * 4 < places_.size()) resize(places_.size() / 2);
  }

  /// Calls `visit` with every block, in no order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Block& block : places_) {
      if (block.tag != 0) visit(block);
    }
  }

 private:
  static constexpr std::size_t places_min = 64;
  static constexpr Tag group = 8;
  __extension__ using Wide = unsigned __int128;

  /// Twice as many places below a million (120 bytes a block while it grows), half as many again below 16 million
  /// (100).
  std::size_t larger() const {
    const std::size_t now = places_.size();
    if (now < std::size_t{1} << 20) return now * 2;
    return now < std::size_t{1} << 24 ? now + now / 2 : now + now / 4;
  }

  std::size_t home(Tag tag) const {
    const std::uint64_t mixed = (tag / group) * 0x9e3779b97f4a7c15u;
    const auto scaled = static_cast<std::size_t>((static_cast<Wide>(mixed) * places_.size()) >> 64);
    return wrap(scaled + tag % group);
  }

  std::size_t wrap(std::size_t place) const { return place < places_.size() ? place : place - places_.size(); }

  std::size_t find_place(Tag tag) const {
    std::size_t place = home(tag);
    while (places_[place].tag != 0 && places_[place].tag != tag) place = wrap(place + 1);
    return place;
  }

  /// Moves back what follows a gap until no entry's search would meet the gap before the entry.
  void close_gap(std::size_t gap) {
    for (std::size_t place = wrap(gap + 1); places_[place].tag != 0; place = wrap(place + 1)) {
      const std::size_t from_home = distance(home(places_[place].tag), place);
      if (from_home < distance(gap, place)) continue;
      places_[gap] = std::move(places_[place]);
      gap = place;
    }
    places_[gap].tag = 0;
  }

  std::size_t distance(std::size_t from, std::size_t to) const {
    return to >= from ? to - from : to + places_.size() - from;
  }

  void resize(std::size_t capacity) {
    std::vector<Block> old(capacity < places_min ? places_min : capacity);
    old.swap(places_);
    for (Block& block : old) {
      if (block.tag != 0) places_[find_place(block.tag)] = std::move(block);
    }
  }

  std::vector<Block> places_;
  std::size_t size_ = 0;
};

/// The live blocks by tag. `Block` is a small struct with a member `tag`; what else it holds is the user's.
///
/// Tags rise by one an allocation and most blocks die young, so a block's age decides where it is kept:
///
/// - the young lie in a ring of groups of 64 consecutive tags, some 400 KB that stay in the cache: nothing is hashed,
///   nothing is searched, and a block that dies there costs 2 ns in all;
/// - a group that leaves the ring is packed, what is dead left out, and found by one hash of its number. It is packed
///   again when half of it has died. A program that frees in the order in which it allocated meets the same group 64
///   times in a row;
/// - a group of which fewer than eight live is no longer worth that: they go to a plain hash table.
///
/// Memory stays below 64 bytes a live block for a Block of 24 bytes, below 96 for one of 32, beside the ring. The table
/// of a JSON parser in Python (1.4 million live blocks) costs 8 ns an operation, tsl::robin_map 70.
template <class Block>
class BlockTable {
 public:
  std::size_t size() const { return size_; }

  /// Adds a block. False, and nothing changes, if its tag is there.
  bool insert(const Block& block) {
    assert(block.tag != 0);
    const Tag number = block.tag / span;
    Young& group = young_[number % young_.size()];
    if (block.tag <= newest_) {
      if (find(block.tag) != nullptr) return false;
      if (group.number != number) return ++size_, scattered_.insert(block);
    } else {
      newest_ = block.tag;
      if (group.number != number) replace(group, number);
    }
    group.blocks[block.tag % span] = block;
    group.live |= bit(block.tag);
    ++size_;
    return true;
  }

  /// The block of a tag, or nullptr where it is not alive; valid until the next change.
  const Block* find(Tag tag) {
    const Young& group = young_[tag / span % young_.size()];
    if (group.number != tag / span) return find_old(tag);
    return (group.live & bit(tag)) != 0 ? &group.blocks[tag % span] : nullptr;
  }

  /// Fetches what find() and erase() look at first, some events before they do.
  void prefetch(Tag tag) const {
    const Young& group = young_[tag / span % young_.size()];
    if (group.number == tag / span) {
      __builtin_prefetch(&group.blocks[tag % span]);
    } else {
      packed_.prefetch(tag / span + 1);
    }
  }

  /// Fetches what they look at then; between the two.
  void prefetch_block(Tag tag) {
    if (young_[tag / span % young_.size()].number == tag / span) return;
    const Packed* const group = packed_.find(tag / span + 1);
    if (group != nullptr && (group->live & bit(tag)) != 0) {
      __builtin_prefetch(group->at(bit(tag)));
    } else {
      scattered_.prefetch(tag);
    }
  }

  /// Removes a block and returns it, or nullptr where the tag is not alive; valid until the next change. (To return a
  /// copy cost 10 ns: what is stored in parts and loaded whole waits for the stores.)
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
      for (std::uint64_t left = group.live; left != 0; left &= left - 1) visit(*group.at(left & -left));
    });
    scattered_.for_each(visit);
  }

 private:
  static constexpr Tag span = 64;
  static constexpr Tag no_number = ~Tag{0};
  static constexpr std::size_t packed_min = 8;

  struct Young {
    Tag number = no_number;
    std::uint64_t live = 0;
    std::unique_ptr<Block[]> blocks;  // by tag % span
  };

  struct Packed {
    Tag tag = 0;                      // the group's number + 1
    std::uint64_t kept = 0;           // which tags have a place in `blocks`
    std::uint64_t live = 0;           // and which of them are alive
    std::unique_ptr<Block[]> blocks;  // by their number among the kept

    Block* at(std::uint64_t one) const { return &blocks[count_bits(kept & (one - 1))]; }
  };

  /// std::popcount is a call to a library where the processor may lack the instruction.
  static std::size_t count_bits(std::uint64_t bits) {
    bits -= bits >> 1 & 0x5555555555555555;
    bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
    return ((bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56;
  }

  static std::uint64_t bit(Tag tag) { return std::uint64_t{1} << tag % span; }

  /// Makes room in the ring for the group `number`.
  void replace(Young& group, Tag number) {
    if (group.live != 0)
      keep(group.number, group.live,
           [&](std::uint64_t one) -> const Block& { return group.blocks[std::countr_zero(one)]; });
    if (group.blocks == nullptr) group.blocks = std::make_unique<Block[]>(span);
    group.number = number;
    group.live = 0;
  }

  /// Packs the live ones of a group, or scatters them where they are few.
  template <class At>
  void keep(Tag number, std::uint64_t live, const At& at) {
    const std::size_t count = count_bits(live);
    if (count < packed_min) {
      for (std::uint64_t left = live; left != 0; left &= left - 1) scattered_.insert(at(left & -left));
      return;
    }
    Packed fresh{number + 1, live, live, std::make_unique<Block[]>(count)};
    Block* out = fresh.blocks.get();
    for (std::uint64_t left = live; left != 0; left &= left - 1) *out++ = at(left & -left);
    packed_.insert(std::move(fresh));
  }

  const Block* find_old(Tag tag) {
    const Packed* const group = packed_.find(tag / span + 1);
    return group != nullptr && (group->live & bit(tag)) != 0 ? group->at(bit(tag)) : scattered_.find(tag);
  }

  const Block* erase_old(Tag tag) {
    Packed* const group = packed_.find(tag / span + 1);
    if (group == nullptr || (group->live & bit(tag)) == 0) {
      Block* const block = scattered_.find(tag);
      if (block == nullptr) return nullptr;
      ended_ = *block;
      scattered_.erase(block);
      --size_;
      return &ended_;
    }
    --size_;
    ended_ = *group->at(bit(tag));
    group->live &= ~bit(tag);
    if (count_bits(group->live) * 2 <= count_bits(group->kept)) {
      const std::optional<Packed> old = packed_.erase(group->tag);
      keep(old->tag - 1, old->live, [&](std::uint64_t one) -> const Block& { return *old->at(one); });
    }
    return &ended_;
  }

  std::array<Young, 256> young_;
  ScatteredBlocks<Packed> packed_;
  ScatteredBlocks<Block> scattered_;
  Block ended_{};  // the last that erase() returned and had no other place
  Tag newest_ = 0;
  std::size_t size_ = 0;
};

}  // namespace cmt
