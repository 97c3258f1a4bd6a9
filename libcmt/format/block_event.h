// The short form in which nearly all events pass between the collector's threads and the encoders.
#pragma once

#include <cassert>
#include <cstdint>

#include "cmt/event.h"
#include "libcmt/format/live_blocks.h"

namespace cmt::format {

/// An event that makes or ends one block, in a third of the memory of an Event and the block that it was given. Nearly
/// all events of a recorder have this form. It requires that
///
/// - the kind has no count and no label,
/// - no usable size was recorded,
/// - the size of the block is below 2^32.
struct BlockEvent {
  std::uint64_t address = 0;
  Tag tag = 0;                   ///< of the block; 0 in no such event
  std::uint64_t time_ns = 0;     ///< as in Event
  std::uint32_t block_size = 0;  ///< bytes asked for when the block was made
  std::uint32_t size = 0;        ///< as in Event: the size in the call, 0 if the kind has no size
  std::uint32_t thread = 0;
  Kind kind{};
  bool makes_block = false;        ///< or ends it
  std::uint8_t alignment_log = 0;  ///< the base-2 logarithm of the alignment + 1; 0: none was asked for

  Event event() const {
    Event event{.kind = kind, .thread = thread, .size = size, .time_ns = time_ns};
    assert(alignment_log <= 64);
    if (alignment_log != 0) event.alignment = std::uint64_t{1} << (alignment_log - 1);
    (makes_block ? event.tag : event.old_tag) = tag;
    (makes_block ? event.address : event.old_address) = address;
    return event;
  }

  /// The block that the event was given; a blank one if the event made a block.
  LiveBlock old() const { return makes_block ? LiveBlock{} : LiveBlock{tag, address, block_size}; }
};

static_assert(sizeof(BlockEvent) == 40);

}  // namespace cmt::format
