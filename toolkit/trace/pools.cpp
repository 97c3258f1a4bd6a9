// Counts live blocks of pools, and says how much of a pool's arenas is in them.

#include "toolkit/trace/pools.h"

#include <algorithm>
#include <cassert>

#include "toolkit/output/numbers.h"

namespace cmt::trace {

using output::counted;

Pools::Pool& Pools::pool_of(std::string_view name) {
  if (last_ < pools_.size() && pools_[last_].name == name) return pools_[last_];
  const auto found = std::find_if(pools_.begin(), pools_.end(), [&](const Pool& pool) { return pool.name == name; });
  last_ = static_cast<std::size_t>(found - pools_.begin());
  if (last_ == pools_.size()) pools_.push_back({.name = std::string(name)});
  return pools_[last_];
}

void Pools::count_event(const Event& event) {
  Pool& pool = pool_of(event.label);
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
  Pool& owner = pools_[block->second.pool];
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
  return chosen_.empty() ||
         std::any_of(pools_.begin(), pools_.end(), [&](const Pool& pool) { return pool.name == chosen_; });
}

std::string Pools::names() const {
  std::string names;
  for (const Pool& pool : pools_) names += (names.empty() ? "" : ", ") + pool.name;
  return names;
}

std::string Pools::line_of(const Pool& pool) const {
  std::string line = counted(pool.events, "event") + " of pool " + pool.name;
  if (chosen_.empty()) line += pool.events == 1 ? " is not counted" : " are not counted";
  line += ": ";
  line += counted(pool.live_blocks, "block") + " with " + counted(pool.live_bytes, "byte") +
          " live at the end, at most " + counted(pool.peak_bytes, "byte");
  const std::string arenas_name = pool.name + " arenas";
  const auto arenas = std::find_if(pools_.begin(), pools_.end(), [&](auto& each) { return each.name == arenas_name; });
  if (arenas != pools_.end() && arenas->live_bytes != 0)
    line += "; its arenas have " + counted(arenas->live_bytes, "byte") + ", of which " +
            output::percent_text(pool.live_bytes, arenas->live_bytes) + " are in live blocks";
  return line + (chosen_.empty() ? " (--pool=\"" + pool.name + "\")" : "");
}

std::vector<std::string> Pools::lines() const {
  std::vector<std::string> lines;
  for (const Pool& pool : pools_) {
    const bool is_asked = chosen_.empty() ? !pool.name.ends_with(" arenas") : pool.name == chosen_;
    if (is_asked) lines.push_back(line_of(pool));
  }
  return lines;
}

}  // namespace cmt::trace
