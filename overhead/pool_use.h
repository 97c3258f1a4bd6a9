/// overhead --pool: the live blocks of a pool over time, and how much of the pool's arenas is in them. A trace has no
/// addresses of these blocks, so it has none of their pages and gaps.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/fates/amount.h"
#include "analysis/fates/live_blocks.h"
#include "analysis/fates/use.h"
#include "analysis/held_pages/page_use.h"
#include "analysis/places/places.h"
#include "analysis/places/summary.h"
#include "cmt/event.h"
#include "toolkit/output/fields.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::overhead {

/// A pool after one event.
struct PoolMoment {
  std::uint64_t event = 0;
  std::uint64_t time_ns = unknown;
  std::uint64_t live_bytes = 0;
  std::uint64_t live_blocks = 0;
  std::uint64_t allocated_bytes = 0;
  std::optional<std::uint64_t> arena_bytes;

  std::optional<std::uint64_t> unused_bytes() const {
    if (!arena_bytes) return std::nullopt;
    return *arena_bytes - std::min(live_bytes, *arena_bytes);
  }
  /// The figure by which --at=unused chooses the moment.
  std::uint64_t unused_or_live() const { return unused_bytes().value_or(live_bytes); }
  /// Blocks are old if they were made before so many bytes had been allocated.
  std::uint64_t old_before() const { return allocated_bytes - std::min(live_bytes, allocated_bytes); }
};

template <class Visitor>
void describe(Visitor& field, const PoolMoment& moment) {
  field("event", moment.event, "the last event, counted from 1; malloc's are not counted");
  field("time_ns", output::nullable(moment.time_ns), "since the recording began");
  field("live_bytes", moment.live_bytes, "bytes asked for by live blocks");
  field("live_blocks", moment.live_blocks, "live blocks");
  field("allocated_bytes", moment.allocated_bytes, "bytes asked for so far, in all");
  field("arena_bytes", moment.arena_bytes, "of the pool's arenas; null where not all of these were recorded");
  field("unused_bytes", moment.unused_bytes(), "arena_bytes less live_bytes");
}

struct PoolSample : PoolMoment {
  std::optional<analysis::Amount> old{};  ///< empty but for every eighth or 16th sample and the last
};

template <class Visitor>
void describe(Visitor& field, const PoolSample& sample) {
  describe(field, static_cast<const PoolMoment&>(sample));
  field("old_blocks", sample.old ? std::optional(sample.old->blocks) : std::nullopt,
        "live blocks since which more bytes were allocated than are live; this and the next of some samples only");
  field("old_bytes", sample.old ? std::optional(sample.old->bytes) : std::nullopt, "bytes asked for by them");
}

/// The live blocks at the sample with the most unused bytes in arenas.
struct PoolHolders {
  PoolMoment moment;
  std::array<analysis::Amount, analysis::SizeClasses::count> by_size{};
  std::array<analysis::Amount, analysis::Doublings::count> by_age{};
};

template <class Visitor>
void describe(Visitor& field, const PoolHolders& holders) {
  describe(field, holders.moment);
  field("by_size", output::by_class<analysis::SizeClasses>(holders.by_size),
        "by size: [size_bytes_min, blocks, live_bytes]");
  field("by_age", output::by_class<analysis::Doublings>(holders.by_age),
        "by the bytes of the pool allocated since the block was made: [age_bytes_min, blocks, live_bytes]");
}

struct PoolSummary {
  std::string name;
  std::string pool;
  std::uint64_t events = 0;
  std::uint64_t defects = 0;
  bool truncated = false;
  std::uint64_t unknown_ends = 0;
  std::optional<std::uint64_t> arena_bytes_peak;
  std::vector<PoolSample> samples;
  PoolMoment peak;
  PoolHolders holders;
};

template <class Visitor>
void describe(Visitor& field, const PoolSummary& summary) {
  field("schema", "cmt.pool_overhead/1", "the name and version of this form");
  field("name", summary.name, "the file's name without its folder");
  field("pool", summary.pool, "the pool's name");
  field("events", summary.events, "events of the pool, and those that are about no block");
  field("defects", summary.defects, "defects found in the trace");
  field("truncated", summary.truncated, "whether the trace breaks off");
  field("unknown_ends", summary.unknown_ends,
        "frees of unknown blocks: made before the trace began, or not recorded. They are in none of the figures below");
  field("peak_arena_bytes", summary.arena_bytes_peak,
        "the most bytes of arenas; null where not all of these were recorded");
  field("samples", summary.samples, "moments, evenly over the trace; the last is its end");
  field("peak", summary.peak, "the moment of most live bytes");
  field("holders", summary.holders,
        "which blocks are live at the sample with the most unused bytes in arenas, or else with the most live bytes; "
        "of the samples that have old_bytes");
}

/// Follows the blocks of a pool. Memory: some 60 bytes a live block.
class PoolFollower {
 public:
  /// Borrows `complaints`. `by`: the sets of uses().
  PoolFollower(analysis::By by, command::Complaints& complaints)
      : live_(heap::Clock::Unit::bytes, complaints), keys_(by) {}

  /// Calls `walk` at each sample at which the holders are found, the last time at that of the summary's holders.
  void call_at_holders(std::function<void()> walk) { at_holders_ = std::move(walk); }

  /// Counts an event as Trace::for_each() passes it on for a pool. `arena_bytes`: as Pools has them.
  void count_event(const Event& event, std::optional<std::uint64_t> arena_bytes);

  const PoolMoment& now() const { return now_; }
  /// The live blocks by set, without figures of pages.
  analysis::PageUses uses() const;
  std::string name(analysis::KeyId key) const { return keys_.name(key); }

  /// To be called once. `arena_bytes`: at the end of the trace, which may be after the pool's last event.
  PoolSummary finish(std::optional<std::uint64_t> arena_bytes);

 private:
  struct Block {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;
    analysis::KeyId key = 0;
  };

  void take_sample(bool walks);
  analysis::Amount find_old() const;
  void find_holders();

  analysis::LiveBlocks<Block> live_;
  analysis::AllocationKeys keys_;
  std::function<void()> at_holders_;  // empty: none
  PoolSummary summary_;
  PoolMoment now_;
  analysis::SampleClock samples_;
};

/// Prints the summary of the pool that the options name. Throws FormatError if the trace has no events of it.
void summarise_pool(const trace::Options& options);

std::string to_text(const PoolSummary& summary);
std::string to_csv(const PoolSummary& summary);

}  // namespace cmt::overhead
