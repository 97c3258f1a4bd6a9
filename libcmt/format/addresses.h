#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "libcmt/format/address_model.h"
#include "libcmt/format/cursor.h"
#include "libcmt/format/live_blocks.h"
#include "libcmt/format/varint_writer.h"

namespace cmt::format {

/// Encodes the addresses of one block of the stream after the other.
class AddressEncoder {
 public:
  /// Takes the next event. `old` is the live block that it was given, or nullptr where none is known.
  void add(const Event& event, const LiveBlock* old) {
    if (traits(event.kind).names) old = nullptr;
    if (event.old_tag != 0 && old == nullptr && !traits(event.kind).names) numbers_.put(event.old_address);
    if (event.tag != 0) add_result(event, old);
    if (old != nullptr && event.ends_block() && (event.tag == 0 || event.address != old->address)) {
      model_.freed(old->address, old->size);
    }
    any_address_ |= (event.address | event.old_address) != 0;
  }

  /// Fetches what add() will look at.
  void prefetch(const Event& event, const LiveBlock& old) const {
    model_.prefetch(event.tag != 0 ? event.bytes() : old.size);
  }

  /// The stream of the events since the last finish(), not compressed. Empty where no event has an address.
  std::string finish();

  /// Starts afresh: the next block is a keyframe.
  void reset() { model_.reset(); }

 private:
  /// An address that is to be given by a difference, before the byte `before` of the others.
  struct Difference {
    std::size_t before;
    std::uint64_t address;
    std::uint64_t last, last_size, class_last;
    std::uint8_t bias;  // 1 after a realloc, whose 0 means "in place"
  };

  void add_result(const Event& event, const LiveBlock* old);
  void add_difference(const Event& event, const AddressModel::Class& own, std::uint8_t bias);
  unsigned common_shift(unsigned rounding) const;
  std::string put_all(std::string_view numbers) const;
  static void put(VarintWriter& out, const Difference& item, unsigned rounding, unsigned shift);

  AddressModel model_;
  VarintWriter numbers_;  // all but the differences
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
    constexpr std::size_t far = 12, near = 6;
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (i + far < events.size()) live_.prefetch(events[i + far].old_tag);
      if (i + near < events.size()) live_.prefetch_block(events[i + near].old_tag);
      fill(events[i]);
    }
  }

  /// Whether the stream is used up, as it has to be after the block's last event.
  bool at_end() const { return cursor_.at_end(); }
  std::uint64_t offset() const { return cursor_.offset(); }

  const LiveBlocks& live() const { return live_; }

 private:
  void fill(Event& event);
  void make(Event& event, bool old_is_known);
  std::uint64_t result_address(const AddressModel::Class& own, const std::uint64_t* old_address, std::uint32_t& place);

  AddressModel model_;
  LiveBlocks live_;
  Cursor cursor_{{}};
  unsigned rounding_ = 0;
  unsigned shift_ = 0;
  bool present_ = false;
};

/// A keyframe's table: the live blocks by rising tag. Reading it throws WireError.
std::string put_live(std::span<const LiveBlock> by_tag);
LiveBlocks take_live(std::string_view bytes);

}  // namespace cmt::format
