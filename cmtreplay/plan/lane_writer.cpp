#include "cmtreplay/plan/lane_writer.h"

namespace cmt::replay {

/// Taking a chunk may publish what there is. So the link is written after, and the lane ends in front of it until then.
void LaneWriter::link(Lane& lane) {
  const Chunk next = chunks_.take();
  if (lane.chunks == 0) {
    lane.first_chunk = next.number;
  } else {
    lane.words[lane.used] = operation_word(operation_control, control_link, next.number);
  }
  lane.words = next.words;
  lane.used = 0;
  ++lane.chunks;
}

}  // namespace cmt::replay
