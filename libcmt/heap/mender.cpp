// Mends events as mender.h describes: apply() finds a contradiction, settle() repairs it, and examine() searches the
// events after an allocation that waits.

#include "libcmt/heap/mender.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace cmt::heap {

namespace {

constexpr Tag last_tag = ~Tag{0};  // no block can be made after it

LiveBlock as_live(const PlacedBlock& block) { return {block.tag, block.address, block.size}; }

}  // namespace

bool Mender::mend(Event& event, LiveBlock& given, std::uint64_t line) {
  if (has_ids_only_) {  // apart like addresses, for the index
    event.address *= 16;
    event.old_address *= 16;
  }
  if (queue_.empty() && event.time_ns >= last_time_ns_ && apply(event, given) == Outcome::applied) {
    if (event.time_ns != unknown) last_time_ns_ = event.time_ns;
    if (has_ids_only_) event.address = event.old_address = 0;
    return true;
  }
  queue_.push_back({.event = event, .label = std::string(event.label), .line = line});
  settle_queue(false);
  return false;
}

std::size_t Mender::mend_in_place(std::span<Event> events, std::span<LiveBlock> given) {
  if (has_ids_only_ || !queue_.empty()) return 0;
  assert(given.size() >= events.size());
  std::size_t i = 0;
  for (; i < events.size(); ++i) {
    Event& event = events[i];
    prefetch(events.subspan(i));
    if ((event.stack != 0 && i != 0) || event.time_ns < last_time_ns_) break;
    given[i] = {};
    if (!apply_plain(event, given[i]) && apply(event, given[i]) != Outcome::applied) break;
    if (event.time_ns != unknown) last_time_ns_ = event.time_ns;
  }
  return i;
}

/// Fetches the memory that some of the events will read. A table with many blocks spends most of its time waiting for
/// memory.
void Mender::prefetch(std::span<const Event> events) {
  constexpr std::size_t far = 12, near = 6;
  if (far >= events.size()) return;
  const auto address = [](const Event& event) { return event.address | event.old_address; };
  if (by_tag_) {
    by_tag_->prefetch(events[far].old_tag);
    by_tag_->prefetch_block(events[near].old_tag);
  }
  live_.prefetch_page(address(events[far]));
  live_.prefetch_blocks(address(events[near]));
}

/// The fast path of apply() for nearly all events: they make or end one block, and nothing is wrong. Returns false, and
/// changes nothing, for any other event.
bool Mender::apply_plain(Event& event, LiveBlock& given) {
  const KindTraits& kind = traits(event.kind);
  if (kind.names || kind.allocates == kind.releases) return false;
  return kind.allocates ? make_plain(event) : end_plain(event, given);
}

bool Mender::make_plain(Event& event) {
  if (event.tag == 0 && event.address == 0) return true;
  const Tag tag = event.tag != 0 ? event.tag : newest_ + 1;
  if (tag <= newest_ || !insert_made(event, tag)) return false;
  event.tag = newest_ = tag;
  first_tag_ = std::min(first_tag_, tag);
  return true;
}

bool Mender::end_plain(Event& event, LiveBlock& given) {
  const Tag tag = event.old_tag;
  if (tag < first_tag_ && tag != 0) return false;
  if (!by_tag_) {
    PlacedBlock found;
    if (event.old_address == 0 || !live_.take(event.old_address, found)) return false;
    if (tag != 0 && tag != found.tag) return live_.insert_apart(found), false;
    given = as_live(found);
  } else {
    const LiveBlock* const found = event.old_address == 0 && tag != 0 ? by_tag_->erase(tag) : nullptr;
    if (found == nullptr) return false;
    given = *found;
    if (given.address != 0) return by_tag_->insert(given), given = {}, false;
  }
  event.old_tag = given.tag;
  newest_ = std::max(newest_, given.tag);
  return true;
}

std::vector<LiveBlock> Mender::list_live_blocks() const {
  std::vector<LiveBlock> blocks;
  if (by_tag_) {
    by_tag_->for_each([&](const LiveBlock& block) { blocks.push_back(block); });
  } else {
    live_.for_each([&](const PlacedBlock& block) { blocks.push_back(as_live(block)); });
  }
  return blocks;
}

std::vector<Mender::Item> Mender::take_mended() { return std::exchange(mended_, {}); }

/// Gives an event its tags and updates the live blocks. If that is impossible, only blocker_ changes.
Mender::Outcome Mender::apply(Event& event, LiveBlock& given_block) {
  const KindTraits& kind = traits(event.kind);
  const bool is_made = kind.allocates && (event.tag != 0 || event.address != 0);
  if (event.tag != 0 ? event.tag <= newest_ : is_made && newest_ == last_tag) return Outcome::contradiction;
  const bool ends = kind.releases && (!kind.allocates || is_made || event.bytes() == 0);
  if (kind.names) return apply_to_named(event, given_block);
  std::optional<PlacedBlock> given;
  if (kind.releases && (event.old_tag | event.old_address) != 0) {
    const Outcome found = find_given(event, given);
    if (found != Outcome::applied) return found;
  }
  const Tag tag = event.tag != 0 ? event.tag : newest_ + 1;
  if (is_made && !insert_made(event, tag)) {
    if (given) insert_again(*given);
    return Outcome::occupied;
  }
  if (given && !ends) insert_again(*given);
  if (given) {
    event.old_tag = given->tag;
    given_block = as_live(*given);
  }
  if (is_made) {
    event.tag = tag;
    first_tag_ = std::min(first_tag_, tag);
  }
  newest_ = std::max({newest_, event.tag, event.old_tag});
  return Outcome::applied;
}

/// Completes an event that names a block and does not end it.
Mender::Outcome Mender::apply_to_named(Event& event, LiveBlock& given) {
  const Tag tag = event.old_tag;
  if (tag != 0 && tag < first_tag_) {
    event.old_address = 0;  // as .cmt has it
    newest_ = std::max(newest_, tag);
    return Outcome::applied;
  }
  std::optional<PlacedBlock> named;
  const Outcome found = tag == 0 && event.old_address == 0 ? Outcome::contradiction : find_given(event, named);
  if (found != Outcome::applied) return found == Outcome::no_block ? Outcome::contradiction : found;
  insert_again(*named);
  event.old_tag = named->tag;
  event.old_address = named->address;
  given = as_live(*named);
  return Outcome::applied;
}

/// Removes the block that an event is given from the live blocks. A block from before the trace leaves `given` empty.
Mender::Outcome Mender::find_given(const Event& event, std::optional<PlacedBlock>& given) {
  const Tag tag = event.old_tag;
  if (tag != 0 && tag < first_tag_) {
    return event.tag != 0 && tag >= event.tag ? Outcome::contradiction : Outcome::applied;
  }
  std::uint64_t address = event.old_address;
  if (tag != 0 && (address == 0 || by_tag_)) {
    const LiveBlock* const found = by_tag().find(tag);
    if (found == nullptr) return Outcome::contradiction;
    if (address != 0 && found->address != 0 && found->address != address) return Outcome::other_address;
    address = found->address;
    given = PlacedBlock{.size = found->size, .tag = tag};
  } else {
    given = PlacedBlock{.tag = tag};
  }
  if (address != 0) {
    PlacedBlock found;
    const bool is_live = live_.take(address, found);
    if (!is_live && tag == 0) return Outcome::no_block;
    if (!is_live || (tag != 0 && tag != found.tag)) {
      if (is_live) live_.insert_apart(found);
      return by_tag().find(tag) == nullptr ? Outcome::contradiction : Outcome::other_address;
    }
    given = found;
  }
  if (by_tag_) by_tag_->erase(given->tag);
  return Outcome::applied;
}

/// Adds the block that an event makes, unless it overlaps a live block.
bool Mender::insert_made(const Event& event, Tag tag) {
  const PlacedBlock made{.address = event.address, .size = has_ids_only_ ? 0 : event.bytes(), .tag = tag};
  if (event.address != 0) {
    const std::uint64_t other = live_.insert_apart(made);
    if (other != 0) return blocker_ = other, false;
  }
  if (by_tag_ || event.address == 0) by_tag().insert({tag, event.address, made.size});
  return true;
}

void Mender::insert_again(const PlacedBlock& block) {
  [[maybe_unused]] const std::uint64_t other = block.address != 0 ? live_.insert_apart(block) : 0;
  assert(other == 0);  // the block was taken out of its place
  if (by_tag_) by_tag_->insert(as_live(block));
}

/// The live blocks by tag, kept from the first event on that has a tag and no address.
BlockTable<LiveBlock>& Mender::by_tag() {
  if (!by_tag_) {
    by_tag_.emplace();
    live_.for_each([&](const PlacedBlock& block) { by_tag_->insert(as_live(block)); });
  }
  return *by_tag_;
}

/// Settles events from the front of the queue until one has to wait. Every event after a waiting one is examined once.
void Mender::settle_queue(bool at_end) {
  while (!queue_.empty()) {
    if (search_.seen == 0) {
      Item first = std::move(queue_.front());
      queue_.pop_front();
      if (settle(first)) continue;
      search_ = {.address = blocker_, .seen = 1, .blocks = blocker_ == first.event.address ? 2u : 1u};
      queue_.push_front(std::move(first));
    }
    while (!search_.is_balanced && !search_.is_over && search_.seen < queue_.size()) {
      examine(queue_[search_.seen].event);
    }
    if (!search_.is_balanced && !search_.is_over && !at_end && queue_.size() <= window) return;
    resolve_wait();
  }
}

/// Appends an event, repaired if necessary. Returns false if it is an allocation that has to wait.
bool Mender::settle(Item& item) {
  Outcome outcome = apply(item.event, item.given);
  if (outcome == Outcome::other_address) {
    item.repair = Repair::other_address;
    item.event.old_address = by_tag().find(item.event.old_tag)->address;
    outcome = apply(item.event, item.given);
  }
  if (outcome == Outcome::contradiction) {
    item.is_dropped = true;
    item.repair = Repair::contradiction;
  }
  if (outcome == Outcome::no_block) {
    if (!traits(item.event.kind).allocates) return free_unmatched(item), true;
    item.repair = Repair::unmatched_realloc;
    item.event.kind = item.event.kind == Kind::reallocarray ? Kind::calloc : Kind::malloc;
    item.event.old_address = 0;
    outcome = apply(item.event, item.given);
  }
  if (outcome == Outcome::occupied) {
    if (!item.repair && item.event.tag == 0) return false;
    end_blockers(item);
  }
  if (item.moves != 0) item.repair = Repair::order_race;
  append(std::move(item));
  return true;
}

/// Repairs a free of an address where no block begins.
void Mender::free_unmatched(const Item& item) {
  const auto block = has_ids_only_ || newest_ == last_tag ? std::nullopt : block_around(item.event.old_address);
  Item free = item;
  free.is_dropped = !block;
  free.repair = block ? Repair::misfree : Repair::unmatched_free;
  if (!block) return append(free);
  const std::uint64_t begin = block->address;
  free.event.old_address = begin;
  apply(free.event, free.given);
  append(free);
  Item head{.event = {.kind = Kind::malloc,
                      .thread = item.event.thread,
                      .size = item.event.old_address - begin,
                      .address = begin,
                      .time_ns = item.event.time_ns},
            .line = item.line,
            .is_own = false};
  [[maybe_unused]] const Outcome outcome = apply(head.event, head.given);
  assert(outcome == Outcome::applied);
  append(std::move(head));
}

/// Updates the search with the next event after the waiting allocation.
void Mender::examine(const Event& event) {
  assert(search_.seen != 0 && search_.seen < queue_.size());
  const Event& waiting = queue_.front().event;
  const std::size_t index = search_.seen++;
  const bool is_soon = index <= race_events && (waiting.time_ns == unknown || event.time_ns == unknown ||
                                                event.time_ns <= waiting.time_ns + race_ns);
  search_.is_over = !is_soon && !search_.released;
  if (search_.is_over) return;
  const KindTraits& kind = traits(event.kind);
  const bool gives = kind.releases && event.old_address == search_.address &&
                     (!kind.allocates || event.address != 0 || event.bytes() == 0);
  const bool takes = kind.allocates && event.address == search_.address;
  if (gives && takes) return;  // a realloc in place
  if (takes) {
    ++search_.blocks;
    search_.is_handed_out_again = true;
  }
  if (!gives) return;
  if (!search_.released) {
    search_.released = index;
    search_.is_own = event.thread == waiting.thread;
  }
  // The address is given back as often as handed out: the free was late, not lost.
  search_.is_of_others |= event.thread != waiting.thread;
  search_.is_balanced = --search_.blocks == 0 && search_.is_of_others;
}

/// Ends the wait: moves the allocation after the event that gave its address back, or inserts a free before the
/// allocation.
void Mender::resolve_wait() {
  assert(!queue_.empty() && search_.seen != 0);
  const Search found = std::exchange(search_, {});
  Item waiting = std::move(queue_.front());
  queue_.pop_front();
  // If the address was given back once and not handed out again, the thread shows which of the two blocks was meant.
  const bool is_late = found.is_balanced || (found.released && !found.is_handed_out_again && !found.is_own);
  if (is_late && waiting.moves < moves_max) {
    ++waiting.moves;
    queue_.insert(queue_.begin() + static_cast<std::ptrdiff_t>(*found.released), std::move(waiting));
    return;
  }
  blocker_ = found.address;
  end_blockers(waiting);
  append(std::move(waiting));
}

/// Inserts a free of each live block that an allocation overlaps, and applies the allocation.
void Mender::end_blockers(Item& item) {
  do {
    Item free{.event = {.kind = Kind::free,
                        .thread = item.event.thread,
                        .old_address = blocker_,
                        .time_ns = item.event.time_ns},
              .line = item.line,
              .is_own = false,
              .repair = blocker_ == item.event.address ? Repair::double_allocation : Repair::overlap};
    [[maybe_unused]] const Outcome outcome = apply(free.event, free.given);
    assert(outcome == Outcome::applied);
    append(std::move(free));
  } while (apply(item.event, item.given) == Outcome::occupied);
}

/// Returns the live block that contains an address after its first byte.
std::optional<PlacedBlock> Mender::block_around(std::uint64_t address) {
  Neighbourhood place{.block = {.address = address}, .prev = {}, .next = {}};
  if (!live_.insert(place)) return std::nullopt;
  live_.take(address, place.block);
  const Neighbour& before = place.prev;
  if (before.address == 0 || address - before.address >= before.size) return std::nullopt;
  return PlacedBlock{.address = before.address, .size = before.size, .tag = before.tag};
}

/// Appends an event to those that take_mended() returns. Times do not go back.
void Mender::append(Item item) {
  Event& event = item.event;
  if (event.time_ns != unknown && !item.is_dropped) {
    if (event.time_ns < last_time_ns_ && item.is_own && !item.repair) item.repair = Repair::time_back;
    last_time_ns_ = event.time_ns = std::max(event.time_ns, last_time_ns_);
  }
  if (has_ids_only_) event.address = event.old_address = 0;
  mended_.push_back(std::move(item));
}

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
      "lies on a live block: that one ended first",
      "its time is before that of the event before: raised to that",
      "its block was made at another address: given at that one",
  };
  assert(static_cast<std::size_t>(repair) < texts.size());
  return texts[static_cast<std::size_t>(repair)];
}

}  // namespace cmt::heap
