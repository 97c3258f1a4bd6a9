#include "libcmt/heap/mender.h"

#include <optional>
#include <utility>

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

using Outcome = Tagger::Outcome;

bool Mender::add(Event& event, std::uint64_t line) {
  has_threads_ |= event.thread != 0;
  if (queue_.empty() && tagger_.name(event) == Outcome::named) {
    if (index_) note(event);
    if (names_only_) strip(event);
    return true;
  }
  queue_.push_back(hold(event, line));
  settle_queue(false);
  return false;
}

void Mender::finish() { settle_queue(true); }

std::vector<Mender::Mended> Mender::take_mended() { return std::exchange(mended_, {}); }

/// Settles what need not wait. Where the first of the queue waits, what stands behind it is looked at once.
void Mender::settle_queue(bool at_end) {
  while (!queue_.empty()) {
    if (search_.seen == 0) {
      Held first = std::move(queue_.front());
      queue_.pop_front();
      if (settle(first)) continue;
      queue_.push_front(std::move(first));
      search_.seen = 1;
    }
    while (search_.verdict == Verdict::open && search_.seen < queue_.size()) look_at(queue_[search_.seen].event);
    const bool is_over = at_end || queue_.size() > window;
    if (search_.verdict == Verdict::open && !is_over) return;
    resolve();
  }
}

/// False: the event is an allocation that has to wait. All else is emitted, mended where it must be.
bool Mender::settle(Held& held) {
  std::optional<Repair> repair;
  Outcome outcome = tagger_.name(held.event);
  if (outcome == Outcome::no_block) {
    if (!traits(held.event.kind).allocates) return free_unmatched(held), true;
    repair = Repair::unmatched_realloc;
    held.event.kind = held.event.kind == Kind::reallocarray ? Kind::calloc : Kind::malloc;
    held.event.old_address = 0;
    outcome = tagger_.name(held.event);
  }
  if (outcome == Outcome::occupied && repair) {  // it does not wait besides
    emit_end(held, Repair::double_allocation);
    tagger_.name(held.event);
  } else if (outcome == Outcome::occupied) {
    return false;
  }
  if (held.moves != 0) repair = Repair::order_race;
  emit(held, repair);
  return true;
}

/// A free where no block begins.
void Mender::free_unmatched(const Held& held) {
  const auto block = names_only_ ? std::nullopt : containing(held.event.old_address);
  if (!block) {
    Mended& dropped = mended_.emplace_back();
    dropped.line = held.line;
    dropped.repair = Repair::unmatched_free;
    return;
  }
  Held end = held;
  end.event.old_address = block->address;
  tagger_.name(end.event);
  emit(end, Repair::misfree);
  Held head = hold({.kind = Kind::malloc,
                    .thread = held.event.thread,
                    .size = held.event.old_address - block->address,
                    .address = block->address,
                    .time_ns = held.event.time_ns},
                   held.line);
  tagger_.name(head.event);
  emit(head, std::nullopt, false);
}

/// Looks whether the next event of the queue tells what became of the block in the way.
void Mender::look_at(const Event& event) {
  const Event& waiting = queue_.front().event;
  const std::size_t place = search_.seen++;
  const bool gives = traits(event.kind).releases && event.old_address == waiting.address &&
                     (!traits(event.kind).allocates || event.address != 0 || event.bytes() == 0);
  const bool takes = traits(event.kind).allocates && event.address == waiting.address;
  if (gives && takes) return;  // a realloc in place
  if (takes) {
    ++search_.blocks;
    search_.is_handed_out_again = true;
  }
  if (!gives) return;
  // As often given back as handed out: so the free in the way was late, not lost.
  if (--search_.blocks == 0) search_.verdict = Verdict::swap;
  if (search_.released) return;
  search_.released = place;
  search_.is_own = has_threads_ && event.thread == waiting.thread;
}

/// Decides about the allocation that waits: behind the event that gave its block back, or after an end put in.
void Mender::resolve() {
  const Search found = std::exchange(search_, {});
  Held waiting = std::move(queue_.front());
  queue_.pop_front();
  // Given back once, and left alone since: by whom tells which of the two blocks it was.
  const bool is_late =
      found.verdict == Verdict::swap || (found.released && !found.is_handed_out_again && !found.is_own);
  if (is_late && waiting.moves < moves_max) {
    ++waiting.moves;
    queue_.insert(queue_.begin() + static_cast<std::ptrdiff_t>(*found.released), std::move(waiting));
    return;
  }
  emit_end(waiting, Repair::double_allocation);
  tagger_.name(waiting.event);
  emit(waiting, std::nullopt);
}

/// Ends the block that stands in an allocation's way.
void Mender::emit_end(const Held& held, std::optional<Repair> repair) {
  emit(hold(tagger_.end(held.event.address, held.event), held.line), repair, false);
}

/// The live block that reaches over an address.
std::optional<PlacedBlock> Mender::containing(std::uint64_t address) {
  if (!index_) {
    index_ = std::make_unique<AddressIndex>();
    tagger_.for_each([&](std::uint64_t begin, Tag tag, std::uint64_t size) {
      index_->insert({.address = begin, .size = size, .tag = tag});
    });
  }
  const auto found = index_->insert({.address = address});
  if (!found) return std::nullopt;
  index_->erase(address);
  const PlacedBlock& before = found->prev;
  if (before.address == 0 || address - before.address >= before.size) return std::nullopt;
  return before;
}

void Mender::emit(const Held& held, std::optional<Repair> repair, bool is_own) {
  if (index_) note(held.event);
  Mended& mended = mended_.emplace_back();
  mended.event = held.event;
  mended.label = held.label;
  mended.line = held.line;
  mended.is_own = is_own;
  mended.repair = repair;
  if (names_only_) strip(*mended.event);
}

/// Keeps the index of addresses.
void Mender::note(const Event& event) {
  if (event.ends_block()) index_->erase(event.old_address);
  if (event.tag != 0) index_->insert({.address = event.address, .size = event.bytes(), .tag = event.tag});
}

void Mender::strip(Event& event) { event.address = event.old_address = 0; }

std::string_view Mender::describe(Repair repair) {
  switch (repair) {
    case Repair::not_understood:
      return "not understood: dropped";
    case Repair::unmatched_free:
      return "no block lives at this address: dropped";
    case Repair::unmatched_realloc:
      return "no block lives at this address: taken as an allocation";
    case Repair::order_race:
      return "a block lives at this address, and is given back later: moved behind that";
    case Repair::double_allocation:
      return "a block lives at this address already: ended first";
    case Repair::misfree:
      return "the address is inside a block: that one ended, and its head begun anew";
    case Repair::contradiction:
      return "its tag contradicts the events before: dropped";
    case Repair::unknown_kind:
      return "its kind is not known: replaced";
  }
  return "";
}

}  // namespace cmt::heap
