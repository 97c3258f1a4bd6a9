// Follows the blocks of a pool by their numbers, as pool_use.h describes.
#include "overhead/pool_use.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

namespace cmt::overhead {

using namespace analysis;

void PoolFollower::count_event(const Event& event, std::optional<std::uint64_t> arena_bytes) {
  live_.start_event(event);
  const KeyId key = keys_.key_of(event);
  ++now_.event;
  if (event.time_ns != unknown) now_.time_ns = event.time_ns;
  if (event.ends_block()) {
    if (const Block* const block = live_.end_block(event.old_tag)) {
      --now_.live_blocks;
      now_.live_bytes -= block->size;
    } else {
      summary_.unknown_ends += !live_.is_made_here(event.old_tag);
    }
  }
  if (event.makes_block() && live_.begin_block(event, {.key = key})) {
    ++now_.live_blocks;
    now_.live_bytes += event.bytes();
    now_.allocated_bytes += event.bytes();
  }
  now_.arena_bytes = arena_bytes;
  if (arena_bytes) summary_.arena_bytes_peak = std::max(summary_.arena_bytes_peak.value_or(0), *arena_bytes);
  if (now_.live_bytes > summary_.peak.live_bytes) summary_.peak = now_;
  if (now_.event == samples_.next) take_sample(samples_.walks_at(now_.event));
}

void PoolFollower::take_sample(bool walks) {
  const std::uint64_t before = samples_.interval;
  summary_.samples.push_back({now_});
  if (walks) {
    summary_.samples.back().old = find_old();
    if (now_.unused_or_live() >= summary_.holders.moment.unused_or_live()) find_holders();
  }
  samples_.advance(now_.event);
  if (samples_.interval == before) return;
  std::erase_if(summary_.samples, [this](const PoolSample& each) { return each.event % samples_.interval != 0; });
}

Amount PoolFollower::find_old() const {
  Amount old;
  const std::uint64_t old_before = now_.old_before();
  live_.for_each([&](const Block& block) {
    if (block.born < old_before) old.add_block(block.size);
  });
  return old;
}

void PoolFollower::find_holders() {
  summary_.holders = {.moment = now_};
  live_.for_each([this](const Block& block) {
    summary_.holders.by_size[SizeClasses::index(block.size)].add_block(block.size);
    summary_.holders.by_age[Doublings::index(live_.clock().now() - block.born)].add_block(block.size);
  });
  if (at_holders_) at_holders_();
}

PageUses PoolFollower::uses() const {
  std::map<KeyId, PageUse> by_key;
  const std::uint64_t old_before = now_.old_before();
  live_.for_each([&](const Block& block) {
    PageUse& use = by_key[block.key];
    ++use.blocks;
    use.live_bytes += block.size;
    if (block.born >= old_before) return;
    ++use.old_blocks;
    use.old_bytes += block.size;
  });
  PageUses uses;
  for (const auto& [key, use] : by_key) uses.entries.push_back({.key = key, .use = use});
  return uses;
}

PoolSummary PoolFollower::finish(std::optional<std::uint64_t> arena_bytes) {
  now_.arena_bytes = arena_bytes;
  if (!summary_.samples.empty() && summary_.samples.back().event == now_.event) summary_.samples.pop_back();
  take_sample(true);
  summary_.events = now_.event;
  return std::move(summary_);
}

void summarise_pool(const trace::Options& options) {
  trace::Trace trace(options, false);
  PoolFollower follower(By::size, trace.complaints());
  trace.for_each([&](const Event& event) { follower.count_event(event, trace.pools().arena_bytes()); });
  PoolSummary summary = follower.finish(trace.pools().arena_bytes());
  summary.name = std::filesystem::path(options.path).filename().string();
  summary.pool = options.pool;
  summary.defects = trace.complaints().count();
  summary.truncated = trace.truncated();
  using Form = trace::Options::Form;
  command::print(options.form == Form::json  ? output::json_text(summary)
                 : options.form == Form::csv ? to_csv(summary)
                                             : to_text(summary));
  trace.complaints().say_count();
}

}  // namespace cmt::overhead
