// A reader that begins at a keyframe knows the tag, size and address of each live block from the keyframe's table. A
// slice also has to state how each block was made:
//
//     table of live blocks    <3> of 48 bytes, <9> of 16 bytes
//
//     origins                 <3> by calloc(3, 16) of thread 2 at 12 ns, <9> by malloc of thread 0 at 20 ns
//
// Without origins a reader would have to decode all events before the keyframe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "libcmt/format/coding.h"
#include "libcmt/format/live_blocks.h"

namespace cmt::format {

/// Returns the allocation by which a slice makes a block that `event` made. A realloc becomes a malloc.
inline Event origin_of(const Event& event) {
  Event made = event;
  made.old_tag = made.old_address = 0;
  if (traits(event.kind).releases) {
    made.kind = Kind::malloc;
    made.size = event.bytes();
    made.count = 1;
  }
  return made;
}

/// Bytes of a live block that were reported by events of the kind touch or resident.
struct OriginRun {
  Tag tag = 0;
  std::uint64_t begin = 0, end = 0;
  Kind kind = Kind::touch;
  std::uint64_t page_size = 0;
};

/// The origins of the live blocks at a keyframe.
struct Origins {
  std::uint64_t time_ns = unknown;  ///< of the last event before the keyframe that has one
  std::vector<Event> blocks{};      ///< the allocations, by rising tag
  std::vector<OriginRun> runs{};    ///< their pages, by rising tag and begin
};

/// Encodes them.
class OriginWriter {
 public:
  /// Adds the next block, by rising tag. `number`: of its stack in the file. `runs`: by rising begin.
  void add(const Event& made, std::uint64_t number, std::span<const OriginRun> runs);

  /// The stream, not compressed.
  std::string finish(std::uint64_t time_ns);

 private:
  VarintWriter calls_, threads_, counts_, alignments_, times_, usables_, stacks_, touched_;
  std::uint64_t index_ = 0, touched_count_ = 0, last_touched_ = 0;
  std::uint64_t last_time_ns_ = 0;
};

/// Encodes origins. `number_of`: returns the number of a stack in the file.
std::string put_origins(const Origins& origins, const std::function<std::uint64_t(StackId)>& number_of);

/// Decodes origins. `live`: the keyframe's table. `stacks`: those that are defined before the keyframe, by their
/// numbers in the file; empty if no stacks are wanted. Throws WireError.
Origins take_origins(std::string_view bytes, std::span<const LiveBlock> live, std::span<const StackId> stacks);

}  // namespace cmt::format
