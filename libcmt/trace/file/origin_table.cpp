#include "libcmt/trace/file/origin_table.h"

#include <algorithm>

namespace cmt {

inline void OriginTable::make_short(Tag tag, Kind kind, std::uint32_t thread, std::uint64_t time_ns, StackId stack) {
  origins_.insert({tag, time_ns, stack, static_cast<std::uint32_t>(kind) | thread << thread_at});
}

inline void OriginTable::end(Tag tag) {
  const Origin* const origin = origins_.erase(tag);
  if (origin == nullptr) return;
  if ((origin->call & has_extra) != 0) extras_.erase(tag);
  pages_.end_block(tag);
}

void OriginTable::add(const Event& event, const LiveBlock& old, StackId stack) {
  if (!is_kept_) return;
  const KindTraits& kind = traits(event.kind);
  if (old.tag != 0 && event.ends_block()) end(old.tag);
  if (event.tag != 0) {
    if (kind.releases) return make(format::origin_of(event), stack);
    if (kind.counts || event.alignment != 0 || event.usable != unknown || event.thread >> (32 - thread_at) != 0)
      return make(event, stack);
    make_short(event.tag, event.kind, event.thread, event.time_ns, stack);
    if (origins_.size() > limit_) give_up();
  } else if (old.tag != 0 && tells_pages(event.kind)) {
    pages_.add(event, heap::bytes_of(event, old.address, old.size), old.size);
  }
}

void OriginTable::add_batch(const EventBatch& batch, std::size_t first, std::size_t count, const BookedEvent* other,
                            bool has_stacks) {
  if (!is_kept_) return;
  constexpr std::size_t ahead = 16, block_ahead = 8;
  has_stacks &= !batch.stacks().empty();
  const std::span<const BlockEvent> events = batch.events();
  for (std::size_t i = first; i < first + count; ++i) {
    const std::size_t last = events.size() - 1;
    origins_.prefetch(events[std::min(i + ahead, last)].tag);
    origins_.prefetch_block(events[std::min(i + block_ahead, last)].tag);
    const BlockEvent& event = events[i];
    const StackId stack = has_stacks ? batch.stacks()[i] : 0;
    if (event.tag == 0) {
      Event whole = other->event;
      if (!batch.has_times()) whole.time_ns = unknown;
      add(whole, other++->old, stack);
      if (!is_kept_) return;
    } else if (!event.makes_block) {
      end(event.tag);
    } else if (event.alignment_log != 0 || event.thread >> (32 - thread_at) != 0) {
      Event whole = event.event();
      if (!batch.has_times()) whole.time_ns = unknown;
      make(whole, stack);
    } else {
      make_short(event.tag, event.kind, event.thread, batch.has_times() ? event.time_ns : unknown, stack);
    }
  }
  if (origins_.size() > limit_) give_up();
}

void OriginTable::give_up() {
  is_kept_ = false;
  origins_ = {};
  extras_ = {};
  pages_ = heap::TouchedPages(true);
}

void OriginTable::make(const Event& event, StackId stack) {
  const bool is_wide = event.thread >> (32 - thread_at) != 0;
  auto call = static_cast<std::uint32_t>(event.kind);
  if (traits(event.kind).counts || event.alignment != 0 || event.usable != unknown || is_wide) {
    call |= has_extra;
    extras_.insert({event.tag, event.size, event.count, event.alignment, event.usable, event.thread});
  }
  if (!is_wide) call |= event.thread << thread_at;
  origins_.insert({event.tag, event.time_ns, stack, call});
  if (origins_.size() > limit_) give_up();
}

Event OriginTable::made_by(const Origin& origin, const LiveBlock& block) {
  Event made{.kind = static_cast<Kind>(origin.call % has_extra),
             .thread = origin.call >> thread_at,
             .size = block.size,
             .tag = block.tag,
             .address = block.address,
             .time_ns = origin.time_ns};
  if ((origin.call & has_extra) == 0) return made;
  const Extra& extra = *extras_.find(block.tag);
  made.size = extra.size;
  made.count = extra.count;
  made.alignment = extra.alignment;
  made.usable = extra.usable;
  made.thread = extra.thread;
  return made;
}

void OriginTable::list_runs(Tag tag, std::vector<format::OriginRun>& runs) const {
  runs.clear();
  const heap::TouchedPages::Runs* const known = pages_.find(tag);
  if (known == nullptr) return;
  for (const auto& [begin, run] : *known) runs.push_back({tag, begin, run.end, run.kind, run.page_size});
}

std::string OriginTable::put(std::span<const LiveBlock> live, std::uint64_t time_ns,
                             const std::function<std::uint64_t(StackId)>& number_of) {
  format::OriginWriter writer;
  std::vector<format::OriginRun> runs;
  for (const LiveBlock& block : live) {
    const Origin* const origin = origins_.find(block.tag);
    if (origin == nullptr) return {};
    list_runs(block.tag, runs);
    writer.add(made_by(*origin, block), number_of(origin->stack), runs);
  }
  std::string table = writer.finish(time_ns);
  return table.size() <= bytes_max ? table : std::string();
}

}  // namespace cmt
