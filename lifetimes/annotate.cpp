#include "lifetimes/annotate.h"

#include <vector>

namespace cmt::lifetimes {

void Annotator::annotate(const Event& event, std::string_view line) {
  live_.start_event(event);
  const bool ends = event.ends_block();
  const bool makes = event.makes_block();
  if (!ends && !(makes && shows_totals_)) {
    out_.plain_line(line);
    if (makes) begin_block(event);
    return;
  }
  out_.begin_annotated_line(line);
  if (ends) end_block(event.old_tag);
  if (makes) begin_block(event);
  if (shows_totals_) {
    if (ends) out_.text(", ");
    out_.live_totals(totals_.bytes, totals_.blocks);
  }
  out_.end_line();
}

void Annotator::end_block(Tag tag) {
  const Block* const block = live_.end_block(tag);
  if (block == nullptr) return out_.text("unknown block");
  totals_.remove_block(block->size);
  out_.block_age(block->size, block->born, live_.clock());
  out_.text(" ago");
}

void Annotator::begin_block(const Event& event) {
  totals_.add_block(event.bytes());
  if (!live_.begin_block(event, {.address = event.address})) {
    totals_.remove_block(live_.replace_block(event, {.address = event.address}).size);
  }
}

void Annotator::append_leaks() {
  std::vector<heap::PlacedBlock> leaks;
  leaks.reserve(live_.size());
  live_.for_each([&](const Block& block) { leaks.push_back({block.address, block.size, block.born, block.tag, 0}); });
  annotate::append_leaks(out_, std::move(leaks), live_.clock());
}

}  // namespace cmt::lifetimes
