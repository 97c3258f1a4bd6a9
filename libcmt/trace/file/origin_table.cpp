// Appends allocations to columns, and from time to time moves those of live blocks to the front and drops the others.

#include "libcmt/trace/file/origin_table.h"

#include <algorithm>
#include <cassert>
#include <functional>

namespace cmt {
namespace {

/// Makes room for one more entry. `most`: so many entries, and those of a batch, are there before some are dropped. A
/// column that is no longer small gets memory for all of them at once, because growing step by step touches twice the
/// memory.
template <class Value>
void make_room(std::vector<Value>& column, std::size_t most) {
  constexpr std::size_t small = 1 << 15;
  if (column.size() == column.capacity() && column.size() >= small && column.size() < most)
    column.reserve(most + EventBatch::capacity);
}

/// Appends a value to a column. The column is empty as long as all values are `none`.
template <class Value>
void append_to(std::vector<Value>& column, Value value, Value none, std::size_t size_before, std::size_t most) {
  if (column.empty()) {
    if (value == none) return;
    column.resize(size_before, none);
  }
  make_room(column, most);
  column.push_back(value);
}

}  // namespace

/// Finds the allocations of rising tags. In a damaged file, the tags of the table may not rise. Then the search may not
/// find all of them.
class OriginTable::Search {
 public:
  explicit Search(const OriginTable& table) : table_(table) {}

  static constexpr std::size_t nowhere = ~std::size_t{0};

  /// The place of a block's allocation in the columns, or `nowhere`.
  std::size_t find(Tag tag) {
    const std::vector<Run>& runs = table_.runs_;
    while (run_ < runs.size() && runs[run_].tag <= tag) ++run_;
    if (run_ == 0) return nowhere;
    const Run& run = runs[run_ - 1];
    const std::size_t end = run_ < runs.size() ? runs[run_].place : table_.calls_.size();
    return tag - run.tag < end - run.place ? run.place + (tag - run.tag) : nowhere;
  }

  /// The Extra of the block that was found last; nullptr if it has none.
  const Extra* extra(std::size_t place, Tag tag) {
    if ((table_.calls_[place] & has_extra) == 0) return nullptr;
    const std::vector<Extra>& extras = table_.extras_;
    while (extra_ < extras.size() && extras[extra_].tag < tag) ++extra_;
    return extra_ < extras.size() && extras[extra_].tag == tag ? &extras[extra_] : nullptr;
  }

 private:
  const OriginTable& table_;
  std::size_t run_ = 0;  // the run after the one that has the tag
  std::size_t extra_ = 0;
};

[[gnu::always_inline]] inline void OriginTable::append(Tag tag, Call call, std::uint64_t time_ns, StackId stack) {
  if (tag != next_tag_) runs_.push_back({tag, calls_.size()});
  next_tag_ = tag + 1;
  append_to(stacks_, stack, StackId{0}, calls_.size(), calls_max_);
  append_to(times_, time_ns, unknown, calls_.size(), calls_max_);
  make_room(calls_, calls_max_);
  calls_.push_back(call);
}

void OriginTable::make(const Event& event, StackId stack) {
  const bool is_wide = event.thread >= threads_max;
  auto call = static_cast<Call>(event.kind);
  assert(call < has_extra);
  if (!is_wide) call |= event.thread << thread_at;
  if (traits(event.kind).counts || event.alignment != 0 || event.usable != unknown || is_wide) {
    call |= has_extra;
    make_room(extras_, extras_max_);
    extras_.push_back({event.tag, event.size, event.count, event.alignment, event.usable, event.thread});
  }
  append(event.tag, call, event.time_ns, stack);
}

void OriginTable::add(const Event& event, const LiveBlock& old, StackId stack) {
  if (!is_kept_) return;
  if (event.tag != 0) {
    make(traits(event.kind).releases ? format::origin_of(event) : event, stack);
  } else if (old.tag != 0 && names_pages(event.kind)) {
    pages_.add(event, heap::bytes_of(event, old.address, old.size), old.size);
  } else if (old.tag != 0 && event.kind == Kind::discard) {
    pages_.drop(event, old.size);
  }
  check_room();
}

void OriginTable::add_batch(const EventBatch& batch, std::size_t first, std::size_t count, const BookedEvent* other,
                            bool has_stacks) {
  has_stacks &= !batch.stacks().empty();
  for (std::size_t i = first; i < first + count && is_kept_; ++i) {
    const BlockEvent& event = batch.events()[i];
    const StackId stack = has_stacks ? batch.stacks()[i] : 0;
    if (event.tag == 0) {
      Event whole = other->event;
      if (!batch.has_times()) whole.time_ns = unknown;
      add(whole, other++->old, stack);
    } else if (!event.makes_block) {
      continue;
    } else if (event.alignment_log != 0 || event.thread >= threads_max) {
      Event whole = event.event();
      if (!batch.has_times()) whole.time_ns = unknown;
      make(whole, stack);
    } else {
      append(event.tag, static_cast<Call>(event.kind) | event.thread << thread_at,
             batch.has_times() ? event.time_ns : unknown, stack);
    }
  }
  if (is_kept_) check_room();
}

void OriginTable::give_up() {
  is_kept_ = false;
  runs_ = {};
  calls_ = {};
  stacks_ = {};
  times_ = {};
  extras_ = {};
  pages_ = heap::TouchedPages(true);
}

void OriginTable::check_room() {
  if (live_.live_blocks() > limit_) return give_up();
  if (is_full()) drop_ended();
}

/// Drops the blocks that have ended, unless most blocks live: listing all live blocks takes longer than keeping more.
void OriginTable::drop_ended() {
  const std::size_t live = live_.live_blocks();
  calls_max_ = std::max(calls_min, 3 * live);
  extras_max_ = std::max(extras_min, 2 * live);
  runs_max_ = std::max({runs_min, live / 4, 3 * live_runs_});
  if (!is_full()) return;
  keep_only(live_.list_live_blocks());
  live_runs_ = pages_.runs();
  runs_max_ = std::max(runs_max_, 3 * live_runs_);
  if (calls_.capacity() > 4 * calls_max_) {
    calls_.shrink_to_fit();
    stacks_.shrink_to_fit();
    times_.shrink_to_fit();
  }
  if (extras_.capacity() > 4 * extras_max_) extras_.shrink_to_fit();
}

void OriginTable::keep_only(std::span<const LiveBlock> live) {
  assert(stacks_.empty() || stacks_.size() == calls_.size());
  assert(times_.empty() || times_.size() == calls_.size());
  Search search(*this);
  std::vector<Run> runs;
  std::size_t kept = 0, kept_extras = 0;
  for (const LiveBlock& block : live) {
    const std::size_t place = search.find(block.tag);
    if (place == Search::nowhere) continue;
    assert(kept <= place);  // so that no entry is overwritten before it is moved
    if (const Extra* const extra = search.extra(place, block.tag)) extras_[kept_extras++] = *extra;
    if (runs.empty() || block.tag != runs.back().tag + (kept - runs.back().place)) runs.push_back({block.tag, kept});
    calls_[kept] = calls_[place];
    if (!stacks_.empty()) stacks_[kept] = stacks_[place];
    if (!times_.empty()) times_[kept] = times_[place];
    ++kept;
  }
  runs_ = std::move(runs);
  calls_.resize(kept);
  stacks_.resize(std::min(stacks_.size(), kept));
  times_.resize(std::min(times_.size(), kept));
  extras_.resize(kept_extras);
  next_tag_ = 0;
  pages_.keep_only([live](Tag tag) { return std::ranges::binary_search(live, tag, std::less(), &LiveBlock::tag); });
}

Event OriginTable::made_by(std::size_t place, const Extra* extra, const LiveBlock& block) const {
  const Call call = calls_[place];
  Event made{.kind = static_cast<Kind>(call % has_extra),
             .thread = call >> thread_at,
             .size = block.size,
             .tag = block.tag,
             .address = block.address,
             .time_ns = times_.empty() ? unknown : times_[place]};
  if (extra == nullptr) return made;
  made.size = extra->size;
  made.count = extra->count;
  made.alignment = extra->alignment;
  made.usable = extra->usable;
  made.thread = extra->thread;
  return made;
}

void OriginTable::list_runs(Tag tag, std::vector<format::OriginRun>& runs) const {
  runs.clear();
  const heap::TouchedPages::Runs* const known = pages_.find(tag);
  if (known == nullptr) return;
  for (const auto& [begin, run] : *known) runs.push_back({tag, begin, run.end, run.kind, run.page_size});
}

std::string OriginTable::put(std::span<const LiveBlock> live, std::uint64_t time_ns,
                             const std::function<std::uint64_t(StackId)>& number_of) const {
  assert(std::ranges::is_sorted(live, {}, &LiveBlock::tag));
  format::OriginWriter writer;
  std::vector<format::OriginRun> runs;
  Search search(*this);
  for (const LiveBlock& block : live) {
    const std::size_t place = search.find(block.tag);
    if (place == Search::nowhere) return {};
    list_runs(block.tag, runs);
    const StackId stack = stacks_.empty() ? 0 : stacks_[place];
    writer.add(made_by(place, search.extra(place, block.tag), block), number_of(stack), runs);
  }
  std::string table = writer.finish(time_ns);
  return table.size() <= bytes_max ? table : std::string();
}

}  // namespace cmt
