#include "libcmt/heap/tagger.h"

#include <optional>

namespace cmt::heap {

Tagger::Outcome Tagger::name(Event& event) {
  const KindTraits& kind = traits(event.kind);
  if (mode_ == Mode::undecided && kind.allocates && event.address != 0) {
    mode_ = event.tag == 0 ? Mode::untagged : Mode::tagged;
  }
  if (event.tag >= next_tag_) next_tag_ = event.tag + 1;
  return name_untagged(event);
}

Tagger::Outcome Tagger::name_untagged(Event& event) {
  const KindTraits& kind = traits(event.kind);
  const bool is_given = kind.releases && event.old_tag == 0 && event.old_address != 0;
  const bool is_made = kind.allocates && event.tag == 0 && event.address != 0;
  std::optional<Block> ended;
  if (is_given) {
    const Block* const found = live_.find(event.old_address);
    if (found == nullptr) return Outcome::no_block;
    event.old_tag = found->name;
    // A realloc that returned NULL ends its block where it asked for nothing: Event::ends_block(), before it has a tag.
    if (!kind.allocates || is_made || event.bytes() == 0) ended = live_.erase(event.old_address);
  }
  if (!is_made) return Outcome::named;
  if (live_.insert({event.address, next_tag_, event.bytes()})) {
    event.tag = next_tag_++;
    return Outcome::named;
  }
  if (ended) live_.insert(*ended);
  if (is_given) event.old_tag = 0;
  return Outcome::occupied;
}

Event Tagger::end(std::uint64_t address, const Event& before) {
  Event end{.kind = Kind::free, .thread = before.thread, .old_address = address, .time_ns = before.time_ns};
  name_untagged(end);
  return end;
}

}  // namespace cmt::heap
