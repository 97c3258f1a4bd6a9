// Counts the events of one trace, and collects the blocks that are live at its end.
#include "cmtreport/model/trace_model.h"

#include <algorithm>
#include <cassert>

namespace cmt::report {
namespace {

constexpr std::uint64_t first_events = 64, first_ns = 1024;  // of an interval

}  // namespace

TraceModel::TraceModel(const ModelOptions& options, command::Complaints& complaints)
    : options_(options),
      fates_(std::in_place, heap::Clock::Unit::events, options.touched_min, complaints),
      intervals_(options.by_time ? first_ns : first_events),
      sizes_(SizeClasses::count),
      position_(options.start) {}

void TraceModel::count_event(const Event& event) {
  if (event.time_ns != unknown) last_time_ns_ = event.time_ns;
  if (!options_.by_time)
    ++position_;
  else if (event.time_ns != unknown)
    position_ = std::max(position_, options_.start + std::min(event.time_ns, position_max - options_.start));
  intervals_.start_event(position_, last_time_ns_);
  ++counts_of(event.thread).events;
  const analysis::EndedBlock<Block> ended = fates_->follow(event);
  const bool is_resized = ended && ended.block->is_resized != 0;
  if (ended)
    end_block(*ended.block, ended.fate);
  else if (event.ends_block() && !fates_->is_made_here(event.old_tag))
    ++unknown_ends_;
  if (event.makes_block())
    begin_block(event, is_resized);
  else if (!event.ends_block())
    note_other(event);
}

void TraceModel::end_block(const Block& block, const analysis::Fate& fate) {
  Measures& measures = intervals_.end_block(block.key, block.size);
  if (fate.is_temporary) {
    ++measures[Measure::temporary_blocks];
    measures[Measure::temporary_bytes] += block.size;
  }
  measures[Measure::short_lived_blocks] += fate.is_short_lived;
  measures[Measure::other_thread_blocks] += fate.is_of_other_thread;
  measures[Measure::untouched_bytes] += fate.untouched_bytes;
  count_unknown_touches(block, fate.knows_touches);
  ++sizes_[SizeClasses::index(block.size)].lifetimes[LifetimeClasses::index(fate.lifetime)];
}

void TraceModel::count_unknown_touches(const Block& block, bool is_known) {
  if (!is_known && options_.touched_min != 0 && block.size >= options_.touched_min) unknown_touch_bytes_ += block.size;
}

void TraceModel::begin_block(const Event& event, bool is_resized_again) {
  const std::uint64_t size = event.bytes();
  const auto size_class = static_cast<KeyId>(SizeClasses::index(size));
  const KeyId key = options_.by_stack ? event.stack : size_class;
  if (!fates_->begin_block(event, {.key = key & 0x7fffffff, .is_resized = event.old_tag != 0})) return;
  if (is_resized_again) ++resized_again_[key];
  intervals_.begin_block(key, size, event.old_tag != 0);
  samples_.note_live(intervals_.live().bytes);
  sizes_[size_class].allocated.add_block(size);
  ThreadCounts& counts = counts_of(event.thread);
  counts.allocated.add_block(size);
  counts.activity.add(intervals_.open_end(), intervals_.width(), size);
}

void TraceModel::note_other(const Event& event) {
  if (event.kind == Kind::thread_name) counts_of(event.thread).name = event.label;
  if (event.kind == Kind::sample && event.size != 0 && event.size != unknown) {  // 0: it had ended
    const ResidentSample sample{.resident_bytes = event.size,
                                .live_bytes = intervals_.live().bytes,
                                .event = intervals_.events(),
                                .position = position_};
    samples_.add(sample);
    intervals_.note_sample(sample);
  }
  if (event.kind != Kind::mark) return;
  if (analysis::begins_pause(event) && intervals_.live().blocks != 0) ++pauses_;
  if (marks_.size() == marks_max) {
    ++marks_left_out_;
    return;
  }
  marks_.push_back({std::string(event.label), position_, intervals_.events(), event.time_ns});
}

void TraceModel::find_thread(std::uint32_t thread) {
  const auto [found, is_new] = thread_index_.try_emplace(thread, static_cast<std::uint32_t>(threads_.size()));
  if (is_new) threads_.emplace_back(thread, ThreadCounts{});
  last_thread_ = thread;
  last_index_ = found->second;
}

void TraceModel::finish(std::uint64_t alive_ns) {
  if (options_.by_time && alive_ns != 0)
    intervals_.go_on_to(options_.start + std::min(alive_ns, position_max - options_.start));
  fates_->for_each_live([this](const Block& block) {
    sizes_[SizeClasses::index(block.size)].leaked.add_block(block.size);
    if (const std::uint64_t bytes = fates_->untouched_of(block))
      intervals_.measures_of(block.key)[Measure::untouched_bytes] += bytes;
    count_unknown_touches(block, fates_->knows_touches_of(block));
  });
  intervals_.finish();
  samples_.finish();
  collect_leaked();
  fates_.reset();
}

void TraceModel::collect_leaked() {
  const std::vector<Interval>& intervals = intervals_.intervals();
  struct Leaked {
    Amount amount{};
    std::uint64_t largest_bytes = 0;
  };
  tsl::robin_map<std::uint64_t, Leaked, NumberHash> by_key_and_interval;
  fates_->for_each_live([&](const Block& block) {
    const auto interval =
        std::lower_bound(intervals.begin(), intervals.end(), block.born,
                         [](const Interval& each, std::uint64_t event) { return each.last_event < event; });
    assert(interval != intervals.end());
    const auto index = static_cast<std::uint64_t>(interval - intervals.begin());
    Leaked& leaked = by_key_and_interval[std::uint64_t{block.key} << 32 | index];
    leaked.amount.add_block(block.size);
    leaked.largest_bytes = std::max(leaked.largest_bytes, block.size);
  });
  leaked_.reserve(by_key_and_interval.size());
  for (const auto& [place, leaked] : by_key_and_interval)
    leaked_.push_back(
        {static_cast<KeyId>(place >> 32), static_cast<std::uint32_t>(place), leaked.amount, leaked.largest_bytes});
  std::sort(leaked_.begin(), leaked_.end(), [](const LeakedBlocks& a, const LeakedBlocks& b) {
    return a.interval != b.interval ? a.interval < b.interval : a.key < b.key;
  });
  leaked_width_ = intervals_.width();
}

std::span<const LeakedBlocks> TraceModel::leaked_of(std::size_t interval) const {
  assert(intervals_.width() % leaked_width_ == 0);
  const std::uint64_t joined = intervals_.width() / leaked_width_;  // intervals that have become one
  const auto first_of = [&](std::size_t each) {
    return std::partition_point(leaked_.begin(), leaked_.end(),
                                [&](const LeakedBlocks& blocks) { return blocks.interval / joined < each; });
  };
  return {first_of(interval), first_of(interval + 1)};
}

std::vector<std::pair<std::uint32_t, ThreadCounts>> TraceModel::threads() const {
  auto sorted = threads_;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return sorted;
}

}  // namespace cmt::report
