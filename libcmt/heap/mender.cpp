#include "libcmt/heap/mender.h"

#include <array>
#include <utility>

namespace cmt::heap {

Tagger::Outcome Tagger::assign_tags(Event& event) {
  const KindTraits& kind = traits(event.kind);
  if (mode_ == Mode::undecided && kind.allocates && event.address != 0) {
    mode_ = event.tag == 0 ? Mode::untagged : Mode::tagged;
  }
  if (event.tag >= next_tag_) next_tag_ = event.tag + 1;
  return assign_by_address(event);
}

Tagger::Outcome Tagger::assign_by_address(Event& event) {
  const KindTraits& kind = traits(event.kind);
  const bool is_given = kind.releases && event.old_tag == 0 && event.old_address != 0;
  const bool is_made = kind.allocates && event.tag == 0 && event.address != 0;
  std::optional<Block> ended;
  if (is_given) {
    const Block* const found = live_.find(event.old_address);
    if (found == nullptr) return Outcome::no_block;
    event.old_tag = found->tag;
    // A realloc that returned NULL ends its block where it asked for nothing: Event::ends_block(), before it has a tag.
    if (!kind.allocates || is_made || event.bytes() == 0) ended = live_.erase(event.old_address);
  }
  if (!is_made) return Outcome::tagged;
  if (live_.insert({event.address, next_tag_, event.bytes()})) {
    event.tag = next_tag_++;
    return Outcome::tagged;
  }
  if (ended) live_.insert(*ended);
  if (is_given) event.old_tag = 0;
  return Outcome::occupied;
}

Event Tagger::make_free(std::uint64_t address, const Event& before) {
  Event free{.kind = Kind::free, .thread = before.thread, .old_address = address, .time_ns = before.time_ns};
  assign_by_address(free);
  return free;
}

using Outcome = Tagger::Outcome;

bool Mender::mend(Event& event, std::uint64_t line) {
  has_threads_ |= event.thread != 0;
  if (queue_.empty() && tagger_.assign_tags(event) == Outcome::tagged) {
    if (index_) update_index(event);
    if (has_ids_only_) remove_addresses(event);
    return true;
  }
  queue_.push_back(copy_of(event, line));
  settle_queue(false);
  return false;
}

void Mender::finish() { settle_queue(true); }

std::vector<Mender::Mended> Mender::take_mended() { return std::exchange(mended_, {}); }

/// Settles events from the front of the queue until one has to wait. Every event behind a waiting one is examined once.
void Mender::settle_queue(bool at_end) {
  while (!queue_.empty()) {
    if (search_.seen == 0) {
      Held first = std::move(queue_.front());
      queue_.pop_front();
      if (settle(first)) continue;
      queue_.push_front(std::move(first));
      search_.seen = 1;
    }
    while (search_.verdict == Verdict::open && search_.seen < queue_.size()) examine(queue_[search_.seen].event);
    const bool is_over = at_end || queue_.size() > window;
    if (search_.verdict == Verdict::open && !is_over) return;
    resolve_wait();
  }
}

/// Appends an event, repaired where necessary. Returns false if it is an allocation that has to wait.
bool Mender::settle(Held& held) {
  std::optional<Repair> repair;
  Outcome outcome = tagger_.assign_tags(held.event);
  if (outcome == Outcome::no_block) {
    if (!traits(held.event.kind).allocates) return free_unmatched(held), true;
    repair = Repair::unmatched_realloc;
    held.event.kind = held.event.kind == Kind::reallocarray ? Kind::calloc : Kind::malloc;
    held.event.old_address = 0;
    outcome = tagger_.assign_tags(held.event);
  }
  if (outcome == Outcome::occupied && repair) {  // one repair an event: it does not wait
    append_free(held, Repair::double_allocation);
    tagger_.assign_tags(held.event);
  } else if (outcome == Outcome::occupied) {
    return false;
  }
  if (held.moves != 0) repair = Repair::order_race;
  append(held, repair);
  return true;
}

/// Repairs a free of an address where no block begins.
void Mender::free_unmatched(const Held& held) {
  const auto block = has_ids_only_ ? std::nullopt : block_around(held.event.old_address);
  if (!block) {
    Mended& dropped = mended_.emplace_back();
    dropped.line = held.line;
    dropped.repair = Repair::unmatched_free;
    return;
  }
  Held free = held;
  free.event.old_address = block->address;
  tagger_.assign_tags(free.event);
  append(free, Repair::misfree);
  Held head = copy_of({.kind = Kind::malloc,
                       .thread = held.event.thread,
                       .size = held.event.old_address - block->address,
                       .address = block->address,
                       .time_ns = held.event.time_ns},
                      held.line);
  tagger_.assign_tags(head.event);
  append(head, std::nullopt, false);
}

/// Updates the search with an event that stands behind the waiting allocation.
void Mender::examine(const Event& event) {
  const Event& waiting = queue_.front().event;
  const std::size_t index = search_.seen++;
  const bool gives = traits(event.kind).releases && event.old_address == waiting.address &&
                     (!traits(event.kind).allocates || event.address != 0 || event.bytes() == 0);
  const bool takes = traits(event.kind).allocates && event.address == waiting.address;
  if (gives && takes) return;  // a realloc in place
  if (takes) {
    ++search_.blocks;
    search_.is_handed_out_again = true;
  }
  if (!gives) return;
  // The address is given back as often as handed out: the free was late, not lost.
  if (--search_.blocks == 0) search_.verdict = Verdict::swap;
  if (search_.released) return;
  search_.released = index;
  search_.is_own = has_threads_ && event.thread == waiting.thread;
}

/// Ends the wait: moves the allocation behind the event that gave its address back, or puts a free in before it.
void Mender::resolve_wait() {
  const Search found = std::exchange(search_, {});
  Held waiting = std::move(queue_.front());
  queue_.pop_front();
  // The address was given back once, and not handed out again: the thread tells which of the two blocks was meant.
  const bool is_late =
      found.verdict == Verdict::swap || (found.released && !found.is_handed_out_again && !found.is_own);
  if (is_late && waiting.moves < moves_max) {
    ++waiting.moves;
    queue_.insert(queue_.begin() + static_cast<std::ptrdiff_t>(*found.released), std::move(waiting));
    return;
  }
  append_free(waiting, Repair::double_allocation);
  tagger_.assign_tags(waiting.event);
  append(waiting, std::nullopt);
}

/// Appends a free of the block that lives at an allocation's address.
void Mender::append_free(const Held& before, std::optional<Repair> repair) {
  append(copy_of(tagger_.make_free(before.event.address, before.event), before.line), repair, false);
}

/// The live block that an address lies in, but not its first byte.
std::optional<PlacedBlock> Mender::block_around(std::uint64_t address) {
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

void Mender::append(const Held& held, std::optional<Repair> repair, bool is_own) {
  if (index_) update_index(held.event);
  Mended& mended = mended_.emplace_back();
  mended.event = held.event;
  mended.label = held.label;
  mended.line = held.line;
  mended.is_own = is_own;
  mended.repair = repair;
  if (has_ids_only_) remove_addresses(*mended.event);
}

/// Follows an event in the index of addresses.
void Mender::update_index(const Event& event) {
  if (event.ends_block()) index_->erase(event.old_address);
  if (event.tag != 0) index_->insert({.address = event.address, .size = event.bytes(), .tag = event.tag});
}

void Mender::remove_addresses(Event& event) { event.address = event.old_address = 0; }

std::string_view Mender::describe(Repair repair) {
  static constexpr std::array<std::string_view, repair_count> texts{
      "not understood: dropped",
      "no block lives at this address: dropped",
      "no block lives at this address: taken as an allocation",
      "a block lives at this address, and is given back later: moved behind that",
      "a block lives at this address already: ended first",
      "the address is inside a block: that one ended, and its head begun anew",
      "its tag contradicts the events before: dropped",
      "its kind is not known: replaced",
  };
  return texts[static_cast<std::size_t>(repair)];
}

}  // namespace cmt::heap
