// The address stream of a .cmt: encoder, decoder, and the model of the traced allocator that both run. addresses.cpp
// explains the method and its cost.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "libcmt/format/block_event.h"
#include "libcmt/format/coding.h"
#include "libcmt/format/live_blocks.h"
#include "libcmt/prefetch.h"

namespace cmt::format {

/// The model of the traced allocator, which encoder and decoder of the address stream share.
class AddressModel {
 public:
  /// How many positions of a stack of freed addresses are searched.
  static constexpr std::uint32_t depth = 256;
  /// The number of ways to round a size.
  static constexpr unsigned roundings = 4;

  /// Blocks of a size class.
  class Class {
   public:
    /// Returns the place of an address among the freed ones, 0 for the newest, or `depth` if it is not among the last
    /// `depth`.
    std::uint32_t find(std::uint64_t address) const {
      if (!freed_.empty() && freed_.back() == address) return 0;
      return freed_.size() < 2 ? depth : find_below(address);
    }
    bool has(std::uint64_t place) const { return place < freed_.size(); }
    /// The address at a place. Requires has(place).
    std::uint64_t at(std::uint64_t place) const {
      assert(has(place));
      return freed_[freed_.size() - 1 - place];
    }
    /// The address allocated last.
    std::uint64_t last() const { return last_; }

   private:
    friend class AddressModel;
    std::uint32_t find_below(std::uint64_t address) const;

    std::vector<std::uint64_t> freed_;  // the newest at the end
    std::uint64_t last_ = 0;
  };

  void reset();

  /// Fetches the memory that an event with a block of this size will read.
  void prefetch(std::uint64_t size) const {
    const std::vector<std::uint64_t>& freed = class_of(size).freed_;
    constexpr std::uintptr_t line = 64;
    const std::uintptr_t top = reinterpret_cast<std::uintptr_t>(freed.data()) + freed.size() * sizeof freed[0] - 1;
    cmt::prefetch(reinterpret_cast<const void*>(top));
    cmt::prefetch(reinterpret_cast<const void*>(top - line));
  }

  const Class& class_of(std::uint64_t size) const { return classes_[number_of(size)]; }
  Class& class_of(std::uint64_t size) { return classes_[number_of(size)]; }

  /// Updates the model with an allocation. `place` is the place of its address among the freed, or `depth`.
  void allocated(Class& own, std::uint64_t address, std::uint64_t size, std::uint32_t place) {
    assert(place == depth || own.at(place) == address);
    if (place == 0) {
      own.freed_.pop_back();
    } else if (place < depth) {
      own.freed_.erase(own.freed_.end() - 1 - place);
    }
    own.last_ = last_address_ = address;
    last_size_ = size;
  }

  void freed(std::uint64_t address, std::uint64_t size) {
    if (address == 0) return;  // it was not recorded
    const std::uint32_t number = number_of(size);
    std::vector<std::uint64_t>& freed = classes_[number].freed_;
    if (freed.size() == (number < many_below ? many : few)) forget_half(freed);
    assert(freed.size() < (number < many_below ? many : few));
    freed.push_back(address);
  }

  std::uint64_t last_address() const { return last_address_; }
  std::uint64_t last_size() const { return last_size_; }

  /// The address of a block right after the one at `address`, by a way to round sizes.
  static std::uint64_t after(std::uint64_t address, std::uint64_t size, unsigned rounding);

 private:
  static constexpr std::uint32_t small_classes = 4096;
  static constexpr std::uint32_t class_count = small_classes + 65;
  static constexpr std::uint32_t many_below = 128;
  static constexpr std::size_t many = 16384, few = 256;

  static std::uint32_t number_of(std::uint64_t size) {
    constexpr std::uint64_t small = small_classes * 16 - 24;
    return size <= small ? static_cast<std::uint32_t>((size + 23) / 16) : number_of_large(size);
  }
  static std::uint32_t number_of_large(std::uint64_t size);
  static void forget_half(std::vector<std::uint64_t>& freed);

  std::vector<Class> classes_ = std::vector<Class>(class_count);
  std::uint64_t last_address_ = 0;
  std::uint64_t last_size_ = 0;
};

/// Encodes the addresses of all blocks of the stream, one block after the other.
class AddressEncoder {
 public:
  /// Appends the addresses of an event. `old` is the live block that the event was given, or null if it is not known.
  void add(const Event& event, const LiveBlock* old) {
    if (traits(event.kind).names) old = nullptr;
    if (!note_address(event.address | event.old_address | (old != nullptr ? old->address : 0)))
      return defer(event, old);
    if (event.old_tag != 0 && old == nullptr && !traits(event.kind).names) numbers_.put(event.old_address);
    if (event.tag != 0) add_result(event, old);
    if (old != nullptr && event.ends_block() && (event.tag == 0 || event.address != old->address)) {
      model_.freed(old->address, old->size);
    }
    any_address_ |= (event.address | event.old_address) != 0;
  }

  /// Appends the address of an event in short form.
  void add_short(const BlockEvent& event) {
    if (!note_address(event.address)) {
      if (event.makes_block) deferred_.push_back({event.block_size, Deferred::Sort::made});
    } else if (event.makes_block) {
      add_made(event.address, event.block_size);
    } else {
      model_.freed(event.address, event.block_size);
    }
    any_address_ |= event.address != 0;
  }

  /// Fetches the memory that an event with a block of this size will read.
  void prefetch(std::uint64_t size) const { model_.prefetch(size); }

  /// Returns the stream of the events since the last finish(), not compressed. Empty if no event has an address.
  std::string finish();

  /// Starts afresh: the next block is a keyframe.
  void reset() { model_.reset(); }

 private:
  /// An address that will be encoded by a difference, and placed before the byte `before` of the other numbers.
  struct Difference {
    std::size_t before;
    std::uint64_t address;
    std::uint64_t last, last_size, class_last;
    std::uint8_t bias;  // 1 after a realloc, whose 0 means "in place"
  };

  /// An event without an address, before the first address of the trace. A trace without addresses has no address
  /// stream, so the encoder writes nothing before the first address.
  struct Deferred {
    enum class Sort : std::uint8_t {
      given,
      made,
      in_place
    };  // given: its block is not known; made, in_place: the block that it made

    std::uint64_t size;
    Sort sort;
  };

  /// Notes an address. Returns whether this one or an earlier one was recorded.
  bool note_address(std::uint64_t address) {
    if (!has_addresses_ && address != 0) put_deferred();
    return has_addresses_;
  }
  void defer(const Event& event, const LiveBlock* old);
  void put_deferred();
  void drop_deferred();
  void add_result(const Event& event, const LiveBlock* old);
  void add_made(std::uint64_t address, std::uint64_t size);
  void add_difference(std::uint64_t address, const AddressModel::Class& own, std::uint8_t bias);
  unsigned common_shift(unsigned rounding) const;
  std::string put_all(std::string_view numbers) const;
  static void put(VarintWriter& out, const Difference& item, unsigned rounding, unsigned shift);

  AddressModel model_;
  VarintWriter numbers_;  // all numbers but the differences
  std::vector<Difference> differences_;
  std::array<std::uint64_t, AddressModel::roundings> hits_{};       // of each way to round
  std::array<std::uint64_t, AddressModel::roundings> last_bits_{};  // set in any of its differences
  std::uint64_t class_bits_ = 0;
  bool any_address_ = false;    // in this block of the stream
  bool has_addresses_ = false;  // in all
  std::vector<Deferred> deferred_;
};

/// Decodes address streams. Throws WireError.
class AddressDecoder {
 public:
  /// Starts the stream of the next block. A block with an empty stream has no addresses.
  void start(std::string_view bytes, bool keyframe);

  /// Replaces the live blocks by those of a keyframe's table, unless that is empty. To be called before start().
  void take_live(std::string_view table);

  /// Fills in the addresses of events, and keeps the table of live blocks.
  void fill(std::span<Event> events) {
    visit_fetched(events, [&](std::size_t i) { fill(events[i]); });
  }

  /// Fills in the addresses, and reports in `given` the live block that each event was given; tag 0: not known.
  void fill(std::span<Event> events, std::span<LiveBlock> given) {
    visit_fetched(events, [&](std::size_t i) {
      const LiveBlock* const found = events[i].old_tag != 0 ? live_.find(events[i].old_tag) : nullptr;
      given[i] = found != nullptr ? *found : LiveBlock{};
      fill(events[i]);
    });
  }

  /// Whether the stream is used up, as it has to be after the block's last event.
  bool at_end() const { return cursor_.at_end(); }
  std::uint64_t offset() const { return cursor_.offset(); }

  const LiveBlocks& live() const { return live_; }

 private:
  /// Calls `visit` with the index of each event, after fetching the memory that it will read. The table's entry is
  /// fetched 32 events ahead, and the block itself 16 events ahead.
  template <class Visit>
  void visit_fetched(std::span<const Event> events, const Visit& visit) {
    constexpr std::size_t step = 16;
    const auto step_at = [&](std::size_t begin) {
      const auto rest = events.subspan(std::min(begin, events.size()));
      return rest.first(std::min(step, rest.size()));
    };
    const auto fetch = [&](std::size_t begin) {
      for (const Event& event : step_at(begin)) live_.prefetch(event.old_tag);
    };
    const auto fetch_blocks = [&](std::size_t begin) {
      for (const Event& event : step_at(begin)) live_.prefetch_block(event.old_tag);
    };
    fetch(0);
    fetch(step);
    fetch_blocks(0);
    for (std::size_t begin = 0; begin < events.size(); begin += step) {
      fetch(begin + 2 * step);
      fetch_blocks(begin + step);
      for (std::size_t i = begin; i < std::min(begin + step, events.size()); ++i) visit(i);
    }
  }
  void fill(Event& event);
  void fill_given(Event& event);
  void make(Event& event, const std::uint64_t* old_address);
  std::uint64_t result_address(const AddressModel::Class& own, const std::uint64_t* old_address, std::uint32_t& place);

  AddressModel model_;
  LiveBlocks live_;
  Cursor cursor_{{}};
  unsigned rounding_ = 0;
  unsigned shift_ = 0;
  bool present_ = false;
};

/// A keyframe's table: the live blocks by rising tag. take_live() throws WireError.
std::string put_live(std::span<const LiveBlock> by_tag);
LiveBlocks take_live(std::string_view bytes);

}  // namespace cmt::format
