#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "format/cursor.h"
#include "format/live_blocks.h"
#include "format/varint_writer.h"

namespace cmt::format {

/// What both sides of the address stream know of the allocator that was traced. The essay is in addresses.cpp.
class AddressModel {
 public:
  /// Positions in a stack of freed addresses that are looked at.
  static constexpr std::uint32_t depth = 256;

  void reset();

  /// The place of an address among those freed last of its class, the newest first; `depth` where it is not there.
  std::uint32_t find_freed(std::uint64_t address, std::uint64_t size) const;

  bool has_freed(std::uint64_t place, std::uint64_t size) const;

  /// The address at that place, which there has to be.
  std::uint64_t freed_at(std::uint64_t place, std::uint64_t size) const;

  /// An allocation was seen. `place` is where its address stood among the freed, or `depth`.
  void allocated(std::uint64_t address, std::uint64_t size, std::uint32_t place);

  void freed(std::uint64_t address, std::uint64_t size);

  std::uint64_t last_address() const { return last_address_; }
  std::uint64_t last_size() const { return last_size_; }
  std::uint64_t last_of_class(std::uint64_t size) const { return classes_[class_of(size)].last; }

  /// The number of ways to round a size.
  static constexpr unsigned roundings = 4;

  /// Where a block that follows one at `address` would begin, by a way to round sizes.
  static std::uint64_t after(std::uint64_t address, std::uint64_t size, unsigned rounding);

 private:
  struct Class {
    std::vector<std::uint64_t> freed;  // the newest at the end
    std::uint64_t last = 0;            // address allocated last
  };
  static constexpr std::uint32_t small_classes = 4096;
  static constexpr std::uint32_t class_count = small_classes + 65;
  static std::uint32_t class_of(std::uint64_t size);
  static std::size_t capacity_of(std::uint32_t class_number);

  std::vector<Class> classes_ = std::vector<Class>(class_count);
  std::uint64_t last_address_ = 0;
  std::uint64_t last_size_ = 0;
};

/// Encodes the addresses of one block of the stream after the other.
class AddressEncoder {
 public:
  /// Takes the next event. `old` is the live block that it was given, or nullptr where none is known.
  void add(const Event& event, const LiveBlock* old);

  /// The stream of the events since the last finish(), not compressed. Empty where no event has an address.
  std::string finish();

  /// Starts afresh: the next block is a keyframe.
  void reset() { model_.reset(); }

 private:
  /// An address that is to be given by a difference, before numbers_[before].
  struct Difference {
    std::size_t before;
    std::uint64_t address;
    std::uint64_t last, last_size, class_last;
    std::uint8_t bias;  // 1 after a realloc, whose 0 means "in place"
  };

  void add_result(const Event& event, const LiveBlock* old);
  void add_difference(const Event& event, std::uint64_t size, std::uint8_t bias);
  unsigned common_shift(unsigned rounding) const;
  static void put(VarintWriter& out, const Difference& item, unsigned rounding, unsigned shift);

  AddressModel model_;
  std::vector<std::uint64_t> numbers_;
  std::vector<Difference> differences_;
  std::array<std::uint64_t, AddressModel::roundings> hits_{};       // of each way to round
  std::array<std::uint64_t, AddressModel::roundings> last_bits_{};  // set in any of its differences
  std::uint64_t class_bits_ = 0;
  bool any_address_ = false;
};

/// Decodes them. Throws WireError.
class AddressDecoder {
 public:
  /// The next block's stream. A block without one has no addresses.
  void start(std::string_view bytes, bool keyframe);

  /// Knows what a keyframe's table says, and nothing else. Before start().
  void take_live(std::string_view table);

  /// Fills in the addresses of events, and keeps the table of live blocks.
  void fill(std::span<Event> events) {
    for (Event& event : events) fill(event);
  }

  /// Whether the stream is used up, as it has to be after the block's last event.
  bool at_end() const { return cursor_.at_end(); }
  std::uint64_t offset() const { return cursor_.offset(); }

  const LiveBlocks& live() const { return live_; }

 private:
  void fill(Event& event);
  std::uint64_t result_address(const Event& event, const LiveBlock* old, std::uint32_t& place);

  AddressModel model_;
  LiveBlocks live_;
  Cursor cursor_{{}};
  unsigned rounding_ = 0;
  unsigned shift_ = 0;
  bool present_ = false;
};

/// A keyframe's table: the live blocks by rising tag. Reading it throws WireError.
std::string put_live(const LiveBlocks& live);
LiveBlocks take_live(std::string_view bytes);

}  // namespace cmt::format
