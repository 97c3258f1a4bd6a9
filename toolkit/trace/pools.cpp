// Counts live blocks of pools, and says how much of a pool's arenas is in them.

#include "toolkit/trace/pools.h"

#include <algorithm>
#include <cassert>

#include "toolkit/output/numbers.h"

namespace cmt::trace {

using output::counted;

namespace {

std::string arenas_of(const std::string& pool) { return pool + " arenas"; }

}  // namespace

PoolCount& Pools::pool_of(std::string_view name) {
  if (last_ < pools_.size() && pools_[last_].name == name) return pools_[last_];
  const auto found = std::find_if(pools_.begin(), pools_.end(), [&](auto& pool) { return pool.name == name; });
  last_ = static_cast<std::size_t>(found - pools_.begin());
  if (last_ != pools_.size()) return pools_[last_];
  pools_.push_back({.name = std::string(name)});
  if (!chosen_.empty() && name == arenas_of(chosen_)) arenas_ = last_;
  return pools_[last_];
}

void Pools::count_event(const Event& event) {
  PoolCount& pool = pool_of(event.label);
  ++pool.events;
  if (event.kind == Kind::pool_malloc) {
    live_[event.pool_block] = {event.size, last_};
    ++pool.live_blocks;
    pool.live_bytes += event.size;
    pool.peak_bytes = std::max(pool.peak_bytes, pool.live_bytes);
    return;
  }
  const auto block = live_.find(event.pool_block);
  if (block == live_.end()) return;
  PoolCount& owner = pools_[block->second.pool];
  assert(owner.live_blocks != 0);
  --owner.live_blocks;
  owner.live_bytes -= block->second.size;
  live_.erase(block);
}

/// Events that are about no block pass, except samples: their resident memory is the process's.
const Event* Pools::view_chosen(const Event& event) {
  const KindTraits& kind = traits(event.kind);
  if (!is_of_pool(event.kind)) {
    const bool passes = !kind.allocates && !kind.is_given() && !gives_memory_back(event.kind);
    return passes && event.kind != Kind::sample ? &event : nullptr;
  }
  if (event.label != chosen_) return nullptr;
  event_ = event;
  const bool makes = event.kind == Kind::pool_malloc;
  event_.kind = makes ? Kind::malloc : Kind::free;
  (makes ? event_.tag : event_.old_tag) = event.pool_block;
  event_.pool_block = 0;
  event_.label = {};
  return &event_;
}

bool Pools::is_chosen_known() const {
  return chosen_.empty() || std::any_of(pools_.begin(), pools_.end(), [&](auto& pool) { return pool.name == chosen_; });
}

std::string Pools::names() const {
  std::string names;
  for (const PoolCount& pool : pools_) names += (names.empty() ? "" : ", ") + pool.name;
  return names;
}

std::string Pools::line_of(const PoolCount& pool) const {
  std::string line = counted(pool.events, "event") + " of pool " + pool.name;
  if (chosen_.empty()) line += pool.events == 1 ? " is not counted" : " are not counted";
  line += ": ";
  line += counted(pool.live_blocks, "block") + " with " + counted(pool.live_bytes, "byte") +
          " live at the end, at most " + counted(pool.peak_bytes, "byte");
  if (pool.arena_bytes.value_or(0) != 0)
    line += "; its arenas have " + counted(*pool.arena_bytes, "byte") + ", of which " +
            output::percent_text(pool.live_bytes, *pool.arena_bytes) + " are in live blocks";
  if (pool.has_earlier_arenas) line += "; its arenas from before the recording are not known";
  return line + (chosen_.empty() ? " (--pool=\"" + pool.name + "\")" : "");
}

/// Returns the pools of which a tool should speak, with the bytes of their arenas.
std::vector<PoolCount> Pools::asked() const {
  std::vector<PoolCount> asked;
  for (const PoolCount& pool : pools_) {
    if (chosen_.empty() ? pool.name.ends_with(" arenas") : pool.name != chosen_) continue;
    const std::string name = arenas_of(pool.name);
    const auto arenas = std::find_if(pools_.begin(), pools_.end(), [&](auto& each) { return each.name == name; });
    asked.push_back(pool);
    if (arenas == pools_.end()) continue;
    asked.back().has_earlier_arenas = has_earlier_arenas_;
    if (!has_earlier_arenas_) asked.back().arena_bytes = arenas->live_bytes;
  }
  return asked;
}

std::vector<std::string> Pools::lines() const {
  constexpr std::size_t lines_max = 4;
  std::vector<PoolCount> pools = asked();
  std::stable_sort(pools.begin(), pools.end(), [](auto& a, auto& b) { return a.peak_bytes > b.peak_bytes; });
  const std::size_t count = pools.size() <= lines_max ? pools.size() : lines_max - 1;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < count; ++i) lines.push_back(line_of(pools[i]));
  if (count == pools.size()) return lines;
  std::uint64_t events = 0;
  for (std::size_t i = count; i < pools.size(); ++i) events += pools[i].events;
  lines.push_back(counted(events, "event") + " of " + std::to_string(pools.size() - count) +
                  " other pools are not counted (--pool)");
  return lines;
}

std::optional<std::vector<PoolCount>> Pools::not_counted() const {
  if (!chosen_.empty() || pools_.empty()) return std::nullopt;
  return asked();
}

}  // namespace cmt::trace
