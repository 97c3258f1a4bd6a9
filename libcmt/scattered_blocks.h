#pragma once

#include <cassert>
#include <cstddef>
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

}  // namespace cmt
