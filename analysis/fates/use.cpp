// Counts allocations by set, as use.h describes: figures that rise with each event, and a list at the end.
#include "analysis/fates/use.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "toolkit/output/numbers.h"

namespace cmt::analysis {

Use use_of(const SampledUse& estimates) {
  const auto amount = [](const Estimate& sum) { return Amount{{whole(sum.bytes), whole(sum.blocks)}}; };
  Use use{.allocated = amount(estimates.allocated), .peak = amount(estimates.peak), .leaked = amount(estimates.live)};
  use.temporary = use.short_lived = use.other_thread = use.reallocated = unknown;
  use.growth = static_cast<std::int64_t>(use.leaked.bytes - whole(estimates.at_begin.bytes));
  use.sampled = std::make_shared<const SampledUse>(estimates);
  return use;
}

void fill_unseen(Use& use, std::uint64_t interval) {
  const Estimate none{.interval = interval};
  if (interval != 0 && !use.sampled) use = use_of({none, none, none, {}});
}

Use& Use::operator+=(const Use& more) {
  if (more.sampled) {
    SampledUse sum = *more.sampled;
    if (sampled) sum += *sampled;
    return *this = use_of(sum);
  }
  allocated += more.allocated;
  peak += more.peak;
  leaked += more.leaked;
  temporary += more.temporary;
  short_lived += more.short_lived;
  other_thread += more.other_thread;
  reallocated += more.reallocated;
  if (__builtin_add_overflow(growth, more.growth, &growth))  // sizes that no memory has
    growth = more.growth < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
  add_known(untouched_bytes, more.untouched_bytes);
  add_known(untouched_unknown_bytes, more.untouched_unknown_bytes);
  add_known(freed, more.freed);
  add_known(freed_of_others, more.freed_of_others);
  add_known(moved, more.moved);
  add_known(moved_bytes, more.moved_bytes);
  return *this;
}

std::int64_t Use::metric(Metric metric) const {
  const auto number = [](std::uint64_t figure) { return static_cast<std::int64_t>(figure); };
  switch (metric) {
    case Metric::bytes:
      return number(allocated.bytes);
    case Metric::blocks:
      return number(allocated.blocks);
    case Metric::peak:
      return number(peak.bytes);
    case Metric::live:
      return number(leaked.bytes);
    case Metric::temporary:
      return number(temporary);
    case Metric::short_lived:
      return number(short_lived);
    case Metric::other_thread:
      return number(other_thread);
    case Metric::reallocated:
      return number(reallocated);
    case Metric::growth:
      return growth;
    case Metric::untouched:
      return untouched_bytes == unknown ? 0 : number(untouched_bytes);
  }
  return 0;
}

KeyId AllocationKeys::key_of_other(const Event& event) {
  if (by_ == By::phase) {
    if (event.kind != Kind::mark) return phase_;
    const auto [found, is_new] = phases_.try_emplace(std::string(event.label), static_cast<KeyId>(names_.size()));
    if (is_new) names_.emplace_back(event.label);
    return phase_ = found->second;
  }
  const auto [found, is_new] = threads_.try_emplace(event.thread, static_cast<KeyId>(names_.size()));
  if (is_new) names_.push_back("thread " + std::to_string(event.thread));
  if (event.kind == Kind::thread_name)
    names_[found->second] = "thread " + std::to_string(event.thread) + " (" + std::string(event.label) + ")";
  return found->second;
}

std::string AllocationKeys::name(KeyId key) const {
  if (by_ == By::size) {
    const std::uint64_t low = SizeClasses::low(key), high = SizeClasses::high(key);
    return (low == high ? output::with_commas(low) : output::with_commas(low) + " - " + output::with_commas(high)) +
           (high == 1 ? " byte" : " bytes");
  }
  assert(is_of_stacks(by_) || key < names_.size());
  return is_of_stacks(by_) ? std::string() : names_[key];
}

void add_lifetimes(Lifetimes& sum, const Lifetimes& more) {
  sum.longest = std::max(sum.longest, more.longest);
  auto at = sum.classes.begin();
  for (const auto& each : more.classes) {
    at =
        std::lower_bound(at, sum.classes.end(), each.first, [](const auto& a, std::uint32_t b) { return a.first < b; });
    if (at != sum.classes.end() && at->first == each.first) {
      at->second += each.second;
    } else {
      at = sum.classes.insert(at, each);
    }
  }
}

std::optional<std::uint64_t> lifetime_quantile(const Lifetimes& lifetimes, double share) {
  assert(share >= 0 && share <= 1);
  std::uint64_t blocks = 0;
  for (const auto& [age, count] : lifetimes.classes) blocks += count;
  if (blocks == 0) return std::nullopt;
  auto rank = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(blocks)));
  for (const auto& [age, count] : lifetimes.classes) {
    if (rank <= count) return std::min(AgeClasses::high(age), lifetimes.longest);
    rank -= count;
  }
  return lifetimes.longest;
}

UseCounter::UseCounter(const UseOptions& options, command::Complaints& complaints)
    : fates_(options.clock, options.touched_min, complaints),
      touched_min_(options.touched_min),
      keys_(options.by),
      is_by_thread_(options.by == By::thread),
      part_slices_(options.part_slices) {
  uses_.short_lived_max = fates_.short_lived_max();
  if (!options.slice) return;
  slice_.emplace(*options.slice);
  place_ = Place::before;
}

UseCounter::Counter& UseCounter::counter_of(KeyId key) {
  if (key >= index_.size()) index_.resize(std::max<std::size_t>(key + std::size_t{1}, index_.size() * 2));
  std::uint32_t& index = index_[key];
  if (index == 0) {
    counters_.push_back({.key = key, .allocated = {}, .live = {}});
    if (is_by_thread_) freed_.emplace_back();
    index = static_cast<std::uint32_t>(counters_.size());
  }
  return counters_[index - 1];
}

/// The blocks that are live now are from before the slice. Their bytes are its first peak.
void UseCounter::begin_slice() {
  for (const Counter& counter : counters_) at_begin_.push_back(counter.live.now());
  peak_bytes_ = live_total_.bytes;
  ++peaks_;
  uses_.peak_event = read_;
  uses_.peak_time_ns = last_time_ns_;
}

/// The blocks that were counted so far are from before the part. Their lifetimes are not known.
void UseCounter::begin_part(std::uint64_t time_ns) {
  part_slices_.clear();
  uses_.events = 0;
  uses_.begin_time_ns = time_ns;
  made_before_part_ = made_;
  for (Counter& counter : counters_) {
    Counter anew{.key = counter.key, .allocated = {}, .live = counter.live};
    anew.untouched_bytes = counter.untouched_bytes;
    anew.untouched_unknown_bytes = counter.untouched_unknown_bytes;
    counter = anew;
  }
  freed_.assign(freed_.size(), {});
  lifetimes_.clear();
  begin_slice();
}

void UseCounter::start_late(const trace::LateStart& start, Tag first) {
  assert(slice_ && place_ == Place::before && counters_.empty());
  const bool is_timed = fates_.clock().unit() == heap::Clock::Unit::time;
  const std::uint64_t time_ns = start.origins.time_ns;
  fates_.start_late(!is_timed ? start.event : time_ns != unknown ? time_ns : 0, first);
  slice_->skip_to(read_ = start.event);
  last_time_ns_ = time_ns;
  std::span<const format::OriginRun> runs = start.origins.runs;
  for (const Event& made : start.origins.blocks) {
    const std::uint64_t size = made.bytes();
    const KeyId key = keys_.key_of(made);
    fates_.add_early({made.tag, size, is_timed ? made.time_ns : unknown, key, made.thread});
    newest_early_ = made.tag;
    count_block(made, key, false);
    for (; !runs.empty() && runs.front().tag == made.tag; runs = runs.subspan(1))
      fates_.touch_early(runs.front(), size);
  }
}

bool UseCounter::count_event(const Event& event) {
  if (slice_) {
    const Place before = std::exchange(place_, slice_->next(event));
    if (before == Place::before && place_ != Place::before) {
      begin_slice();
      uses_.begin_time_ns = event.time_ns;
    }
    if (place_ == Place::after) return false;
  }
  ++read_;
  last_time_ns_ = event.time_ns;
  uses_.events += place_ == Place::inside;
  if (trace::begins_slice(event, part_slices_)) begin_part(event.time_ns);
  const EndedBlock<Block> ended = fates_.follow(event);
  if (is_about_pages(event.kind)) return true;
  const KeyId key = keys_.key_of(event);
  const std::uint64_t old_bytes = ended ? ended.block->size : unknown;
  if (ended) count_end(*ended.block, ended.fate);
  if (ended && is_by_thread_) count_free(key, ended.fate);
  if (!event.makes_block() || !fates_.begin_block(event, {.key = key})) return true;
  made_ = event.tag;
  count_block(event, key, event.old_tag != 0);
  if (old_bytes != unknown) count_move(event, key, old_bytes);
  return true;
}

void UseCounter::count_free(KeyId key, const Fate& fate) {
  if (place_ != Place::inside) return;
  counter_of(key);
  Freed& freed = freed_[index_[key] - 1];
  ++freed.blocks;
  freed.of_others += fate.is_of_other_thread;
}

void UseCounter::count_move(const Event& event, KeyId key, std::uint64_t old_bytes) {
  if (place_ != Place::inside) return;
  Counter& counter = counter_of(key);
  add_move(event, old_bytes, counter.moved, counter.moved_bytes);
}

/// Counts the untouched bytes of a block that ends, or that is live at the end.
void UseCounter::count_touches(const Block& block, bool is_known, std::uint64_t untouched_bytes) {
  if (touched_min_ == 0 || block.size < touched_min_) return;
  Counter& counter = counter_of(block.key);
  if (is_known)
    add_known(counter.untouched_bytes, untouched_bytes);
  else
    add_known(counter.untouched_unknown_bytes, block.size);
}

void UseCounter::count_end(const Block& block, const Fate& fate) {
  Counter& counter = counter_of(block.key);
  assert(counter.live.now().blocks != 0 && live_total_.blocks != 0);
  counter.live.change(peaks_).remove_block(block.size);
  live_total_.remove_block(block.size);
  if (place_ != Place::inside) return;
  count_touches(block, fate.knows_touches, fate.untouched_bytes);
  counter.other_thread += fate.is_of_other_thread;
  if (block.tag <= made_before_part_) return;
  const std::size_t place = index_[block.key] - std::size_t{1};
  if (block.tag <= newest_early_ && (block.born == unknown || fate.is_temporary)) {
    early_ends_.push_back({block.tag, block.born, fates_.clock().now(), place, block.thread, fate.is_temporary});
  } else {
    count_age(place, fate.lifetime, fate.is_temporary);
  }
}

void UseCounter::count_age(std::size_t place, std::uint64_t age, bool is_temporary) {
  Counter& counter = counters_[place];
  counter.longest_lifetime = std::max(counter.longest_lifetime, age);
  counter.temporary += is_temporary;
  counter.short_lived += age <= uses_.short_lived_max;
  ++lifetimes_[place * AgeClasses::count + AgeClasses::index(age)];
}

void UseCounter::count_block(const Event& event, KeyId key, bool is_reallocated) {
  const std::uint64_t size = event.bytes();
  Counter& counter = counter_of(key);
  counter.live.change(peaks_).add_block(size);
  live_total_.add_block(size);
  if (place_ != Place::inside) return;
  counter.allocated.add_block(size);
  counter.squared_bytes += static_cast<double>(size) * static_cast<double>(size);
  counter.reallocated += is_reallocated;
  if (live_total_.bytes <= peak_bytes_) return;
  peak_bytes_ = live_total_.bytes;
  ++peaks_;
  uses_.peak_event = read_;
  uses_.peak_time_ns = event.time_ns;
}

Uses UseCounter::finish(const std::string& path) {
  if (slice_ && !slice_->finish(path)) begin_slice();
  uses_.end_time_ns = last_time_ns_;
  if (place_ == Place::after) fates_.note_unknown_end();
  for (const EarlyEnd& end : early_ends_) count_age(end.place, end.ended - end.born, end.is_temporary);
  fates_.for_each_live(
      [this](const Block& block) { count_touches(block, fates_.knows_touches_of(block), fates_.untouched_of(block)); });
  list_entries();
  return std::move(uses_);
}

/// Lists the entries by rising key: in the order of index_, not of counters_. Sorting the entries would move 300 bytes
/// of each many times.
void UseCounter::list_entries() {
  std::vector<std::uint32_t> places(counters_.size());  // of each counter: that of its entry
  uses_.entries.reserve(counters_.size());
  for (const std::uint32_t index : index_) {
    if (index == 0) continue;
    const Counter& counter = counters_[index - 1];
    const Amount at_begin = index <= at_begin_.size() ? at_begin_[index - 1] : Amount{};
    const Freed freed = is_by_thread_ ? freed_[index - 1] : Freed{};
    if (slice_ && counter.allocated.blocks == 0 && at_begin.blocks == 0 && freed.blocks == 0) continue;
    places[index - 1] = static_cast<std::uint32_t>(uses_.entries.size());
    Uses::Entry& entry = uses_.entries.emplace_back();
    entry.key = counter.key;
    entry.use.allocated = counter.allocated;
    entry.use.temporary = counter.temporary;
    entry.use.short_lived = counter.short_lived;
    entry.use.other_thread = counter.other_thread;
    entry.use.reallocated = counter.reallocated;
    entry.use.untouched_bytes = counter.untouched_bytes;
    entry.use.untouched_unknown_bytes = counter.untouched_unknown_bytes;
    entry.use.moved = counter.moved;
    entry.use.moved_bytes = counter.moved_bytes;
    if (is_by_thread_) entry.use.freed = freed.blocks;
    if (is_by_thread_) entry.use.freed_of_others = freed.of_others;
    entry.use.peak = counter.live.at_peak(peaks_);
    entry.use.leaked = counter.live.now();
    entry.use.growth = static_cast<std::int64_t>(entry.use.leaked.bytes - at_begin.bytes);
    entry.lifetimes.longest = counter.longest_lifetime;
    entry.name = keys_.name(counter.key);
    entry.squared_bytes = counter.squared_bytes;
  }
  counters_ = {};
  for (const auto& [place_and_age, count] : lifetimes_) {
    assert(place_and_age / AgeClasses::count < places.size());
    uses_.entries[places[place_and_age / AgeClasses::count]].lifetimes.classes.emplace_back(
        place_and_age % AgeClasses::count, count);
  }
  for (Uses::Entry& entry : uses_.entries) std::sort(entry.lifetimes.classes.begin(), entry.lifetimes.classes.end());
}

}  // namespace cmt::analysis
