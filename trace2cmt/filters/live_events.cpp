#include "live_events.h"

#include <algorithm>
#include <vector>

namespace trace2cmt {

void LiveEvents::follow(const cmt::Event& event) {
  if (event.tag != 0 && event.tag <= newest_) return;  // contradicts the events before, as cmt::Writer::add() has it
  if (event.ends_block()) blocks_.erase(event.old_tag);
  newest_ = std::max({newest_, event.tag, event.old_tag});
  if (event.tag == 0) return;
  Block block{.tag = event.tag,
              .size = event.size,
              .count = event.count,
              .alignment = event.alignment,
              .address = event.address,
              .time_ns = event.time_ns,
              .usable = event.usable,
              .thread = event.thread,
              .kind = event.kind};
  if (cmt::traits(event.kind).releases) {
    block.kind = cmt::Kind::malloc;
    block.size = event.bytes();
    block.count = 1;
  }
  blocks_.insert(block);
}

void LiveEvents::allocate_again(const Emit& emit) {
  std::vector<cmt::Tag> tags;
  tags.reserve(blocks_.size());
  blocks_.for_each([&](const Block& block) { tags.push_back(block.tag); });
  std::sort(tags.begin(), tags.end());
  for (const cmt::Tag tag : tags) {
    const Block& block = *blocks_.find(tag);
    emit({.kind = block.kind,
          .thread = block.thread,
          .size = block.size,
          .count = block.count,
          .alignment = block.alignment,
          .tag = block.tag,
          .address = block.address,
          .time_ns = block.time_ns,
          .usable = block.usable});
  }
}

}  // namespace trace2cmt
