#include "heap/tagger.h"

namespace cmt::heap {

Tagger::Repair Tagger::name(Event& event) {
  const KindTraits& kind = traits(event.kind);
  if (mode_ == Mode::undecided && kind.allocates && event.address != 0) {
    mode_ = event.tag == 0 ? Mode::untagged : Mode::tagged;
  }
  if (event.tag >= next_tag_) next_tag_ = event.tag + 1;
  Repair repair = Repair::none;
  if (kind.releases && event.old_tag == 0 && event.old_address != 0) repair = release(event);
  if (repair != Repair::dropped && kind.allocates && event.tag == 0 && event.address != 0 && !allocate(event)) {
    repair = Repair::ended_first;
  }
  return repair;
}

Tagger::Repair Tagger::release(Event& event) {
  const auto found = live_.find(event.old_address);
  if (found == live_.end()) {
    if (!traits(event.kind).allocates) return Repair::dropped;
    event.kind = event.kind == Kind::reallocarray ? Kind::calloc : Kind::malloc;
    event.old_address = 0;
    return Repair::now_malloc;
  }
  event.old_tag = found->second;
  event.tag = event.address != 0 ? 1 : 0;  // as ends_block() wants to know it
  if (event.ends_block()) live_.erase(found);
  event.tag = 0;
  return Repair::none;
}

bool Tagger::allocate(Event& event) {
  event.tag = next_tag_++;
  const auto [place, is_new] = live_.insert({event.address, event.tag});
  if (is_new) return true;
  end_first_ =
      Event{.kind = Kind::free, .thread = event.thread, .old_tag = place->second, .old_address = event.address};
  end_first_.time_ns = event.time_ns;
  place.value() = event.tag;
  return false;
}

std::string_view Tagger::describe(Repair repair) {
  switch (repair) {
    case Repair::none:
      return "";
    case Repair::dropped:
      return "no block lives at this address: dropped";
    case Repair::now_malloc:
      return "no block lives at this address: taken as an allocation";
    case Repair::ended_first:
      return "a block lives at this address already: ended first";
  }
  return "";
}

}  // namespace cmt::heap
