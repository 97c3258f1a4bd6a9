// A flight recorder's file begins in the middle of the recording, with blocks that were made before. When the recorder
// drops the oldest events, it must keep those of their allocations that are still live. Each is kept as it was made:
// kind, size, thread, time, usable size and call stack. Only the dropped events have these fields.
//
//     dropped events     malloc(8) = <7>   malloc(9) = <8>   free(<7>)   malloc(5) = <9>
//     next keyframe      live: <3> <8> <9>
//
//     live before        <3> <5>
//     live at the begin  <3> as it was before, <8> and <9> as the dropped events made them
//
// Tags rise in all three lists, so one pass over each is enough. Frees can be skipped, because the keyframe lists the
// survivors.
//
// Cost: some 20 bytes of memory a live block. While events are folded in, as much again and 24 bytes a block.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "libcmt/format/live_blocks.h"
#include "libcmt/heap/touched_pages.h"
#include "libcmt/trace/file/cmt_sink.h"

namespace cmt::collector {

/// Allocations, by rising tag, each in some 20 bytes.
class PackedAllocations {
 public:
  void append(const Event& allocation);
  std::size_t size() const { return size_; }

  /// Calls `visit(event)` with each allocation.
  void for_each(const std::function<void(const Event&)>& visit) const;

 private:
  std::string bytes_;
  std::size_t size_ = 0;
  Event last_{};
  std::uint64_t last_time_ns_ = 0;
};

/// The blocks that are live at the begin of the kept events, as they were allocated, with their touched pages.
class LiveAtBegin {
 public:
  /// Moves the begin to a later keyframe, at which `survivors` are live, by rising tag. After that add() takes all
  /// events in between, in order.
  void begin_fold(std::vector<format::LiveBlock> survivors);
  /// `stacks`: of a column with the events (stack_column.h). add() removes the ones that it has used.
  void add(std::span<const Event> events, std::span<const EventStack>& stacks);
  void finish_fold();

  std::size_t size() const { return live_.size(); }
  /// Calls `emit(event)` for each block's allocation, and after it for the known runs of pages of the block.
  void for_each_event(const std::function<void(const Event&)>& emit) const;

 private:
  void keep(const Event& allocation);
  void follow_pages(const Event& pages);

  PackedAllocations live_;
  heap::TouchedPages pages_{true};
  std::vector<Tag> with_pages_;
  // While events are folded in.
  std::vector<format::LiveBlock> survivors_;
  std::size_t next_survivor_ = 0;
  PackedAllocations next_live_;
};

/// The live blocks of a keyframe's table, by rising tag. Throws format::WireError.
std::vector<format::LiveBlock> list_live(std::string_view table);

}  // namespace cmt::collector
