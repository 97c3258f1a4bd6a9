#include "lifetimes/annotate.h"

#include <vector>

#include "toolkit/annotate/leak_lines.h"

namespace cmt::lifetimes {

void Annotator::add(const Event& event, std::string_view line) {
  clock_.begin(event);
  const bool ends = event.ends_block();
  const bool makes = event.makes_block();
  if (!ends && !(makes && settings_.totals)) {
    out_.bare(line);
    if (makes) begin(event);
    return;
  }
  out_.annotate(line);
  if (ends) end(event.old_tag);
  if (makes) begin(event);
  if (settings_.totals) append_totals(!ends);
  out_.close();
}

void Annotator::end(Tag tag) {
  if (const auto block = live_.erase(tag)) {
    totals_.end(block->size);
    append_age(*block);
    out_.text(" ago");
  } else {
    out_.text("unknown block");
    if (first_tag_ != 0 && tag >= first_tag_) complain(tag, "is ended and not alive");
  }
}

void Annotator::begin(const Event& event) {
  if (first_tag_ == 0) first_tag_ = event.tag;
  clock_.allocate(event.bytes());
  const Block block{event.tag, event.address, event.bytes(), clock_.now()};
  totals_.begin(block.size);
  if (live_.insert(block)) return;
  complain(event.tag, "is made and already alive");
  totals_.end(live_.erase(event.tag)->size);
  live_.insert(block);
}

void Annotator::append_age(const Block& block) {
  out_.decimal(block.size);
  out_.text(" bytes, allocated ");
  out_.decimal(clock_.now() - block.born);
  out_.text(" ");
  out_.text(clock_.unit_text());
}

void Annotator::append_totals(bool first) {
  out_.text(first ? "live " : ", live ");
  out_.decimal(totals_.bytes);
  out_.text(" bytes in ");
  out_.decimal(totals_.blocks);
  out_.text(" blocks");
}

void Annotator::append_leaks() {
  std::vector<heap::PlacedBlock> leaks;
  leaks.reserve(live_.size());
  live_.for_each([&](const Block& block) { leaks.push_back({block.address, block.size, block.born, block.tag, 0}); });
  heap::append_leaks(out_, std::move(leaks), clock_);
}

void Annotator::complain(Tag tag, std::string_view what) {
  complaints_.add("block <" + std::to_string(tag) + "> " + std::string(what));
}

}  // namespace cmt::lifetimes
